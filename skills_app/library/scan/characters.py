"""Find invisible characters, and characters that look like others, in text files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from skills_app.library.package import SKILL_FILE, Package
from skills_app.library.scan.finding import ScanFinding, Severity
from skills_app.library.scan.text import shown
from text_scanner.characters import character_hits, disguised
from text_scanner.linear import compile_linear

MAX_SHOWN = 5
"""The maximum number of findings of each kind in one file."""

# In UTF-8: tags, changes of direction, blank letters, zero-width characters, repeated selectors.
_STRONG = compile_linear(
    "[\U000e0001-\U000e007f]{2}|[\u202a-\u202e\u2066-\u2069]|[\u3164\u115f\u1160\uffa0\u2800]|"
    "[\u200b\u200c\u2060-\u2064]{4}|[\ufe00-\ufe0e]{3}|[\U000e0100-\U000e01ef]{2}".encode()
)
_BLANK_IN_CODE = compile_linear("[\u3164\u115f\u1160\uffa0]".encode())
_CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\x80-\x84\x86-\x9f]")
"""Control characters other than white space."""
_STRICT = {"tag-characters", "bidi-control", "variation-selectors", "zero-width"}


def character_findings(path: str, text: str, *, code: bool) -> Iterator[ScanFinding]:
    """Yield the findings in `text`. The checks of SKILL.md are the strictest.

    `text` is the part of the file within the limit. `code` says whether the file is code.
    """
    shown_of: dict[str, int] = {}
    for hit in character_hits(text):
        severity: Severity = hit.severity
        if path == SKILL_FILE and severity == "warning" and hit.pattern in _STRICT:
            severity = "danger"
        shown_of[hit.pattern] = shown_of.get(hit.pattern, 0) + 1
        if shown_of[hit.pattern] > MAX_SHOWN:
            continue
        begin = max(text.rfind("\n", 0, hit.start) + 1, hit.start - 40)
        yield ScanFinding(
            severity,
            hit.pattern,
            path,
            text.count("\n", 0, hit.start) + 1,
            f"{hit.description}.",
            shown(text[begin : hit.end + 40]),
        )
    found = _CONTROL.search(text)
    if found is not None:
        near = text[max(0, found.start() - 40) : found.end() + 40]
        line = text.count("\n", 0, found.start()) + 1
        message = "A control character, which can change a terminal."
        yield ScanFinding("warning", "control-character", path, line, message, shown(near))
    if code:
        yield from blank_letters(path, text.encode("utf-8", "replace"))


def blank_letters(path: str, data: bytes) -> Iterator[ScanFinding]:
    found = _BLANK_IN_CODE.search(data)
    if found is not None:
        line = data.count(b"\n", 0, found.start()) + 1
        near = data[max(0, found.start() - 60) : found.end() + 60].decode("utf-8", "ignore")
        message = "An invisible letter in code, in a name or a text."
        yield ScanFinding("danger", "blank-letter", path, line, message, shown(near))


def hidden_in_bytes(path: str, data: bytes) -> Iterator[ScanFinding]:
    """Yield the plainest findings in `data`, the part of a file beyond the limit."""
    found = _STRONG.search(data)
    if found is not None:
        line = data.count(b"\n", 0, found.start()) + 1
        near = data[max(0, found.start() - 60) : found.end() + 60].decode("utf-8", "ignore")
        yield ScanFinding(
            "warning", "hidden-characters", path, line, "Invisible characters.", shown(near)
        )


def head_findings(package: Package) -> Iterator[ScanFinding]:
    """Yield the findings in the head's names and description, which every prompt contains.

    Also yields the findings in the names of the package's files.
    """
    head = package.head
    for what, text in (
        ("name", head.name),
        ("title", head.title),
        ("description", head.description),
    ):
        for hit in character_hits(text):
            if hit.severity == "note":
                continue
            yield ScanFinding(
                "danger",
                hit.pattern,
                SKILL_FILE,
                1,
                f"In the {what}: {hit.description}.",
                shown(text),
            )
    for file in package.files:
        if any(disguised(word) for word in _words(file.path)):
            message = "The file's name has letters of another script that look like Latin ones."
            yield ScanFinding("warning", "mixed-scripts", file.path, 0, message, shown(file.path))


def _words(path: str) -> list[str]:
    return "".join(letter if letter.isalpha() else " " for letter in path).split()
