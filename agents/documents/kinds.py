"""Types and names of uploaded files.

The name gives the type, and the content must agree.

In the web process, this reads only the start of a file and markers in it. A program in a sandbox
reads the full content later.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import IO

from sandbox.backends.normal_form import normal_form

FAMILIES = ("text", "data", "office", "pdf", "image", "archive")
OTHER = "other"
"""In the setting: also accept all other files, as bytes."""
HEAD_BYTES = 4096
MARK_BYTES = 256 * 1024
"""Search this many bytes at each end of a zip file for names of office documents."""
CHUNK_BYTES = 1024 * 1024

_CONTROLS = bytes({*range(0x20), 0x7F} - {*b"\t\n\v\f\r\b\x1b"})
"""Bytes that no text contains, in any encoding. Terminal logs contain escapes and backspaces."""
_WIDE = (b"\xff\xfe", b"\xfe\xff")
_ZIP = b"PK\x03\x04"
_OLE = bytes.fromhex("d0cf11e0a1b11ae1")
_WORD, _SHEET, _SLIDES = (b"word/",), (b"xl/",), (b"ppt/",)
_OOXML = "application/vnd.openxmlformats-officedocument."
_ODF = "application/vnd.oasis.opendocument."


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of file. One of `heads` (offset, bytes) must match; without heads it is text.

    `marks`: a zip file of this type contains one of them. `reader` is the function of
    `programs/markdown.py` that converts it to Markdown.
    """

    family: str
    media_type: str
    heads: tuple[tuple[int, bytes], ...] = ()
    marks: tuple[bytes, ...] = ()
    reader: str = ""

    @property
    def is_picture(self) -> bool:
        """Whether the file can be sent to a model as a picture."""
        return self.media_type in PICTURES


PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
PLAIN = Kind("text", "text/plain")
UNKNOWN = Kind(OTHER, "application/octet-stream")


def _zip(media_type: str, *marks: bytes, family: str = "office", reader: str = "") -> Kind:
    return Kind(family, media_type, ((0, _ZIP),), marks, reader)


def _head(family: str, media_type: str, *heads: bytes, at: int = 0, reader: str = "") -> Kind:
    return Kind(family, media_type, tuple((at, head) for head in heads), reader=reader)


_JPEG = _head("image", "image/jpeg", b"\xff\xd8\xff")
_TIFF = _head("image", "image/tiff", b"II*\0", b"MM\0*")
_GZIP = _head("archive", "application/gzip", b"\x1f\x8b")
_DOCX = _zip(f"{_OOXML}wordprocessingml.document", *_WORD, reader="docx")
_XLSX = _zip(f"{_OOXML}spreadsheetml.sheet", *_SHEET, reader="xlsx")
_PPTX = _zip(f"{_OOXML}presentationml.presentation", *_SLIDES, reader="pptx")
_SQLITE = _head("data", "application/vnd.sqlite3", b"SQLite format 3\0")
_HDF = _head("data", "application/x-hdf5", b"\x89HDF\r\n\x1a\n")
_HTML = Kind("text", "text/html", reader="html")

BY_SUFFIX: dict[str, Kind] = {
    **dict.fromkeys(("txt", "log", "text"), PLAIN),
    **dict.fromkeys(("md", "markdown"), Kind("text", "text/markdown")),
    "csv": Kind("text", "text/csv"),
    "tsv": Kind("text", "text/tab-separated-values"),
    **dict.fromkeys(("json", "geojson", "ipynb"), Kind("text", "application/json")),
    **dict.fromkeys(("jsonl", "ndjson"), Kind("text", "application/x-ndjson")),
    **dict.fromkeys(("yaml", "yml"), Kind("text", "application/yaml")),
    "xml": Kind("text", "application/xml"),
    **dict.fromkeys(("html", "htm"), _HTML),
    "svg": Kind("text", "image/svg+xml"),
    "rtf": Kind("text", "application/rtf", ((0, b"{\\rtf"),), reader="rtf"),
    "pdf": _head("pdf", "application/pdf", b"%PDF-", reader="pdf"),
    **dict.fromkeys(("docx", "docm"), _DOCX),
    **dict.fromkeys(("xlsx", "xlsm"), _XLSX),
    **dict.fromkeys(("pptx", "pptm"), _PPTX),
    "odt": _zip(f"{_ODF}text", b"opendocument.text"),
    "ods": _zip(f"{_ODF}spreadsheet", b"opendocument.spreadsheet"),
    "odp": _zip(f"{_ODF}presentation", b"opendocument.presentation"),
    "doc": _head("office", "application/msword", _OLE),
    "xls": _head("office", "application/vnd.ms-excel", _OLE),
    "ppt": _head("office", "application/vnd.ms-powerpoint", _OLE),
    "png": _head("image", "image/png", b"\x89PNG\r\n\x1a\n"),
    **dict.fromkeys(("jpg", "jpeg"), _JPEG),
    "gif": _head("image", "image/gif", b"GIF87a", b"GIF89a"),
    "webp": _head("image", "image/webp", b"WEBP", at=8),
    "bmp": _head("image", "image/bmp", b"BM"),
    **dict.fromkeys(("tif", "tiff"), _TIFF),
    "zip": _head("archive", "application/zip", _ZIP, b"PK\x05\x06"),
    **dict.fromkeys(("gz", "tgz"), _GZIP),
    "bz2": _head("archive", "application/x-bzip2", b"BZh"),
    "xz": _head("archive", "application/x-xz", b"\xfd7zXZ\0"),
    "zst": _head("archive", "application/zstd", b"\x28\xb5\x2f\xfd"),
    "7z": _head("archive", "application/x-7z-compressed", b"7z\xbc\xaf\x27\x1c"),
    "tar": _head("archive", "application/x-tar", b"ustar", at=257),
    "parquet": _head("data", "application/vnd.apache.parquet", b"PAR1"),
    **dict.fromkeys(("sqlite", "sqlite3", "db"), _SQLITE),
    "duckdb": _head("data", "application/vnd.duckdb", b"DUCK", at=8),
    **dict.fromkeys(("arrow", "feather"), _head("data", "application/vnd.apache.arrow.file",
                                                b"ARROW1", b"FEA1")),
    "npy": _head("data", "application/x-npy", b"\x93NUMPY"),
    "npz": _zip("application/x-npz", b".npy", family="data"),
    **dict.fromkeys(("h5", "hdf5"), _HDF),
}  # fmt: skip


class NotTaken(Exception):
    """The file's type is not accepted, or contradicts its name.

    The message is for people. It continues a sentence that starts with the file's name.
    """


def kind_of(name: str, file: IO[bytes], allowed: Collection[str] = FAMILIES) -> Kind:
    """Return the type of `file` with the name `name`, and rewind the file.

    A name without a known suffix is treated as text; if it is no text, and `OTHER` is in `allowed`,
    the result is `UNKNOWN`. `allowed` are families. Raises `NotTaken`.
    """
    suffix = split_suffix(name)[1].removeprefix(".").casefold()
    file.seek(0)
    head = file.read(HEAD_BYTES)
    kind = BY_SUFFIX.get(suffix, PLAIN)
    fits = _fits(kind, head, file)
    file.seek(0)
    if fits and kind.family in allowed:
        return kind
    if OTHER in allowed and suffix not in BY_SUFFIX:
        return UNKNOWN
    if not fits:
        told = f"is not what its name says ({kind.media_type})"
        raise NotTaken(told if suffix in BY_SUFFIX else "is of a kind that is not taken here")
    raise NotTaken(f"is of a kind that is not taken here ({kind.family})")


def _fits(kind: Kind, head: bytes, file: IO[bytes]) -> bool:
    if kind.heads:
        return _has_head(kind, head) and (not kind.marks or _has_mark(kind, file))
    return not any(_has_head(other, head) for other in _BINARY) and _is_text(file)


_BINARY = tuple(
    {kind for kind in BY_SUFFIX.values() if kind.heads and kind.media_type != "image/bmp"}
)
"""Without bitmaps: many texts start with their two letters."""


def _has_head(kind: Kind, head: bytes) -> bool:
    return any(head[at : at + len(mark)] == mark for at, mark in kind.heads)


def _has_mark(kind: Kind, file: IO[bytes]) -> bool:
    """Search both ends of a zip file, which contain names of its members."""
    size = file.seek(0, 2)
    for start in (0, max(0, size - MARK_BYTES)):
        file.seek(start)
        part = file.read(MARK_BYTES)
        if any(mark in part for mark in kind.marks):
            return True
    return False


def _is_text(file: IO[bytes]) -> bool:
    file.seek(0)
    chunk = file.read(CHUNK_BYTES)
    if chunk.startswith(_WIDE):
        return True
    while chunk:
        if len(chunk.translate(None, _CONTROLS)) != len(chunk):
            return False
        chunk = file.read(CHUNK_BYTES)
    return True


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
    """Return the original name for people, of at most `ORIGINAL_CHARS` characters.

    Hidden characters are replaced by `_`.
    """
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
