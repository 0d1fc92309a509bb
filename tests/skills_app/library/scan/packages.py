"""Packages for the tests of the scan."""

from __future__ import annotations

from skills_app.library.package import Package, PackageFile
from skills_app.library.read import read_package, require_package
from skills_app.library.scan import ScanFinding, scan_package
from tests.support.skills import skill_text


def pack(files: dict[str, str | bytes] | None = None, *, text: str = "", **fields: str) -> Package:
    held = [PackageFile("SKILL.md", (text or skill_text(**fields)).encode())]
    for path, content in (files or {}).items():
        data = content.encode() if isinstance(content, str) else content
        held.append(PackageFile(path, data, data.startswith(b"#!")))
    return require_package(*read_package(held))


def findings(
    files: dict[str, str | bytes] | None = None, *, text: str = "", **fields: str
) -> list[ScanFinding]:
    return scan_package(pack(files, text=text, **fields))


def codes(found: list[ScanFinding], *severities: str) -> set[str]:
    wanted = severities or ("note", "warning", "danger")
    return {held.code for held in found if held.severity in wanted}
