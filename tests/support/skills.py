"""Skill packages for tests, as folders and as rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from skills_app.actions.versions import VersionDetails, store_package
from skills_app.library.package import Package
from skills_app.library.scopes import LIBRARY
from skills_app.library.sources.folder import read_folder
from skills_app.models import SkillVersion, Trust

DESCRIPTION = "Counts beans. Use it when beans are to be counted."


def skill_text(
    name: str = "beans", description: str = DESCRIPTION, body: str = "Count them.", **fields: str
) -> str:
    """Return a SKILL.md; `fields` are further lines of its frontmatter, `_` for `-` in names."""
    more = "".join(f"{key.replace('_', '-')}: {value}\n" for key, value in fields.items())
    return f"---\nname: {name}\ndescription: {description}\n{more}---\n\n{body}\n"


def write_skill(
    directory: Path,
    name: str = "beans",
    files: Mapping[str, str | bytes] | None = None,
    *,
    text: str | None = None,
    **fields: str,
) -> Path:
    """Write a package below `directory` and return its folder. Files with a #! line are 0755."""
    folder = directory / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(text or skill_text(name, **fields))
    for path, content in (files or {}).items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        place.write_bytes(data)
        if data.startswith(b"#!"):
            place.chmod(0o755)
    return folder


def package(directory: Path, name: str = "beans", **options: object) -> Package:
    return read_folder(write_skill(directory, name, **options))  # type: ignore[arg-type]


def store_skill(
    package: Package, scope: str = LIBRARY, trust: Trust = Trust.REVIEWED, **options: object
) -> SkillVersion:
    details = VersionDetails("import")
    return store_package(scope, package, details, trust=trust, **options)  # type: ignore[arg-type]
