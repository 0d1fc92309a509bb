"""Hostile packages. Half of them were not used while the scan was tuned."""

from __future__ import annotations

import hashlib

from skills_app.library.package import Package, PackageFile
from skills_app.library.read import read_package, require_package
from tests.skills_app.library.scan.hostile_later import LATER
from tests.skills_app.library.scan.hostile_scripts import SCRIPTS
from tests.skills_app.library.scan.hostile_texts import PLAIN, TEXTS

BODY = (
    "# Tables\n\nAlign numbers to the right. Run the script in `scripts/` on the file and show "
    "what it prints."
)


def hostile(*, held: bool) -> dict[str, Package]:
    """Return packages by name: those for the tuning of the scan, or those that were kept aside."""
    made = {name: (description, body, files) for name, (description, body, files) in TEXTS.items()}
    made |= {name: (PLAIN, BODY, files) for name, files in SCRIPTS.items()}
    return {name: _package(*parts) for name, parts in made.items() if is_held(name) == held}


def later() -> dict[str, Package]:
    """Return the packages that were written after the rules were final."""
    return {name: _package(*parts) for name, parts in LATER.items()}


def is_held(name: str) -> bool:
    return hashlib.sha256(name.encode()).digest()[0] % 2 == 0


def _package(description: str, body: str, files: dict[str, str | bytes]) -> Package:
    head = f'---\nname: tables\ndescription: "{description}"\n---\n\n{body}\n'
    held = [PackageFile("SKILL.md", head.encode())]
    for path, content in files.items():
        data = content.encode() if isinstance(content, str) else content
        held.append(PackageFile(path, data, data.startswith(b"#!")))
    return require_package(*read_package(held))
