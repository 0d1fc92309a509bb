"""Names for files that strangers have named."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator

from sandbox.backends.normal_form import normal_form

NAME_BYTES = 180
"""Room is left for a number and for `.md`: file systems end at 255."""
SUFFIX_BYTES = 20
TRIES = 1_000
RENDITION = ".md"
ORIGINAL_CHARS = 255

_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
_RESERVED = frozenset(
    ("con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10)))
)
"""Devices on the computers on which an archive of the workspace may be unpacked one day."""


def safe_name(given: str) -> str:
    """The last part of a name that somebody's computer gave, without what may hurt anybody.

    No slashes of either kind, no control, direction or zero-width characters, no leading dot or
    dash, no device of Windows, at most 180 bytes with the suffix kept.
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
    """The name as it came, for people: without what hides, at most 255 characters."""
    return _visible(given.encode("utf-8", "replace").decode())[:ORIGINAL_CHARS]


def split_suffix(name: str) -> tuple[str, str]:
    """(stem, suffix with its dot); an overlong suffix is part of the stem."""
    stem, dot, suffix = name.rpartition(".")
    if not dot or not stem or len(suffix.encode()) > SUFFIX_BYTES:
        return name, ""
    return stem, f".{suffix}"


def same_name(name: str) -> str:
    """Equal for names that some file system takes for one."""
    return normal_form("NFC", name).casefold()


def free_name(name: str, taken: Collection[str], also: str = "") -> str:
    """`name`, with a number where it is taken; with `also`, that suffix to it must be free too.

    `taken` are names as `same_name` gives them. Raises `LookupError` after a thousand.
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
