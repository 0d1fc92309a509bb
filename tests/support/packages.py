"""Skill packages for tests: in memory, in directories, in archives."""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path

from skills_app.library.package import PackageFile

BODY = "# Report\n\nWrite the report.\n"


def skill_text(
    name: str = "report", description: str = "Writes reports.", *lines: str, body: str = BODY
) -> str:
    """Return a SKILL.md. `lines` are further lines of its frontmatter."""
    head = [f"name: {name}", f"description: {description}", *lines]
    return "---\n" + "".join(f"{line}\n" for line in head) + f"---\n{body}"


def package_files(
    text: str | bytes | None = None, others: Mapping[str, str | bytes] | None = None
) -> list[PackageFile]:
    """Return SKILL.md and `others` by path."""
    skill = skill_text() if text is None else text
    return [
        PackageFile(path, _bytes(data))
        for path, data in {"SKILL.md": skill, **(others or {})}.items()
    ]


def make_folder(directory: Path, files: Mapping[str, str | bytes] | None = None) -> Path:
    """Create a directory with a SKILL.md of its name, and `files`."""
    directory.mkdir(parents=True, exist_ok=True)
    for path, data in {"SKILL.md": skill_text(directory.name), **(files or {})}.items():
        place = directory / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(_bytes(data))
    return directory


def make_zip(
    files: Mapping[str, str | bytes] | None = None,
    *,
    modes: Mapping[str, int] | None = None,
    method: int = zipfile.ZIP_DEFLATED,
) -> bytes:
    """Return a zip archive with exactly these entries. `modes` are Unix modes by name."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        for name, data in (files or {"report/SKILL.md": skill_text()}).items():
            entry = zipfile.ZipInfo(name)
            entry.create_system = 3
            mode = (modes or {}).get(name, stat.S_IFREG | 0o644)
            entry.external_attr = mode << 16
            entry.compress_type = method
            archive.writestr(entry, data)
    return packed.getvalue()


def _bytes(data: str | bytes) -> bytes:
    return data.encode() if isinstance(data, str) else data
