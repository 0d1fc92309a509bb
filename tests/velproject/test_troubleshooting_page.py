"""docs/operations/troubleshooting.md quotes messages that the code contains."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "operations" / "troubleshooting.md"
SOURCES = ("agents", "memory", "sandbox", "skills_app", "templates", "velproject")
ENDINGS = (".py", ".html", ".js")
SHORTEST = 9
"""Characters. Shorter pieces are not searched."""
_BLOCK = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_JOINED = re.compile(r'"\s*\n\s*f?"')
"""The end of a piece of a text, and the start of the next piece."""


def quoted() -> list[tuple[str, list[str]]]:
    """Return the messages of the page, each with its pieces: `…` stands for a value."""
    lines = [line for block in _BLOCK.findall(PAGE.read_text()) for line in block.splitlines()]
    return [(line, [part.strip() for part in line.split("…")]) for line in lines]


def source() -> str:
    """Return the code with each text of several pieces on one line."""
    files = (
        path
        for name in SOURCES
        for path in sorted((ROOT / name).rglob("*"))
        if path.suffix in ENDINGS and "migrations" not in path.parts
    )
    return "\n".join(_JOINED.sub("", path.read_text()) for path in files)


def test_each_message_is_in_the_code() -> None:
    code = source()
    messages = quoted()
    assert len(messages) > 50
    for line, parts in messages:
        long = [part for part in parts if len(part) >= SHORTEST]
        assert long, f"{line!r} is too short to search"
        assert not [part for part in long if part not in code], f"{line!r} is not in the code"
