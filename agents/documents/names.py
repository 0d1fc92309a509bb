"""Safe names for uploaded files."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator

from sandbox.backends.normal_form import normal_form

NAME_BYTES = 180
"""Leaves room for a number and `.md`: file systems allow 255 bytes."""
SUFFIX_BYTES = 20
TRIES = 1_000
RENDITION = ".md"
ORIGINAL_CHARS = 255

_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
_RESERVED = frozenset(
    ("con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10)))
)
"""Device names on Windows, where somebody may unpack an archive of the workspace."""


def safe_name(given: str) -> str:
    """Return the last part of an uploaded file's name, made safe.

    The result has no slashes or backslashes, no control, bidirectional or zero-width characters, no
    leading dot or dash, and is not a Windows device. It has at most 180 bytes and keeps the suffix.
    """
    last = given.replace("\\", "/").rpartition("/")[2]
    clean = _visible(normal_form("NFC", last.encode("utf-8", "replace").decode())).strip()
    clean = clean.lstrip(".- ").rstrip(". ") or "upload"
    if clean.partition(".")[0].casefold() in _RESERVED:
        clean = f"_{clean}"
    stem, suffix = split_suffix(clean)
    room = NAME_BYTES - len(suffix.encode())
    return stem.encode()[:room].decode(errors="ignore") + suffix


def original_name(given: str) -> str:
    """Return the original name for people, without hidden characters and with at most 255."""
    return _visible(given.encode("utf-8", "replace").decode())[:ORIGINAL_CHARS]


def split_suffix(name: str) -> tuple[str, str]:
    """Return stem and suffix with its dot. An overlong suffix is part of the stem."""
    stem, dot, suffix = name.rpartition(".")
    if not dot or not stem or len(suffix.encode()) > SUFFIX_BYTES:
        return name, ""
    return stem, f".{suffix}"


def same_name(name: str) -> str:
    """Return a text that is equal for names that some file systems treat as equal."""
    return normal_form("NFC", name).casefold()


def free_name(name: str, taken: Collection[str], also: str = "") -> str:
    """Return `name`, with a number if it is in use. With `also`, `name + also` must be free, too.

    `taken` are results of `same_name`. Raises `LookupError` if no number below 1,000 is free.
    """
    for candidate in _numbered(name):
        names = {candidate, candidate + also}
        if not any(same_name(each) in taken for each in names):
            return candidate
    raise LookupError(f"there are {TRIES} files of this name")


def _numbered(name: str) -> Iterator[str]:
    yield name
    stem, suffix = split_suffix(name)
    for number in range(2, TRIES):
        yield f"{stem}-{number}{suffix}"


def _visible(text: str) -> str:
    return "".join("_" if unicodedata.category(char) in _HIDDEN else char for char in text)
