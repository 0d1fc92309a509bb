"""Determine the type of a file by its first bytes, and compare it with the extension."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

Group = Literal[
    "text", "image", "font", "media", "document", "archive", "program", "bytecode", "data"
]


@dataclass(frozen=True, slots=True)
class Kind:
    """The type of a file.

    `name` is for people. `suffixes` are the normal extensions of this type.
    """

    group: Group
    name: str
    suffixes: tuple[str, ...] = ()


_MAGIC: tuple[tuple[int, bytes, Kind], ...] = (
    (0, b"\x7fELF", Kind("program", "ELF program")),
    (0, b"\xcf\xfa\xed\xfe", Kind("program", "Mach-O program")),
    (0, b"\xce\xfa\xed\xfe", Kind("program", "Mach-O program")),
    (0, b"\xfe\xed\xfa\xce", Kind("program", "Mach-O program")),
    (0, b"\xfe\xed\xfa\xcf", Kind("program", "Mach-O program")),
    (0, b"\xca\xfe\xba\xbe", Kind("program", "Java class or universal Mach-O program")),
    (0, b"dex\n03", Kind("program", "Android program")),
    (0, b"!<arch>\n", Kind("program", "object library")),
    (0, b"\x00asm", Kind("bytecode", "WebAssembly", (".wasm",))),
    (0, b"\x89PNG\r\n\x1a\n", Kind("image", "PNG image", (".png",))),
    (0, b"\xff\xd8\xff", Kind("image", "JPEG image", (".jpg", ".jpeg"))),
    (0, b"GIF87a", Kind("image", "GIF image", (".gif",))),
    (0, b"GIF89a", Kind("image", "GIF image", (".gif",))),
    (8, b"WEBP", Kind("image", "WebP image", (".webp",))),
    (0, b"\x00\x00\x01\x00", Kind("image", "icon", (".ico",))),
    (0, b"II*\x00", Kind("image", "TIFF image", (".tif", ".tiff"))),
    (0, b"MM\x00*", Kind("image", "TIFF image", (".tif", ".tiff"))),
    (0, b"8BPS", Kind("image", "Photoshop image", (".psd",))),
    (0, b"wOFF", Kind("font", "font", (".woff",))),
    (0, b"wOF2", Kind("font", "font", (".woff2",))),
    (0, b"OTTO", Kind("font", "font", (".otf",))),
    (0, b"\x00\x01\x00\x00\x00", Kind("font", "font", (".ttf", ".otf"))),
    (0, b"true\x00", Kind("font", "font", (".ttf",))),
    (0, b"ttcf", Kind("font", "font", (".ttc",))),
    (0, b"%PDF-", Kind("document", "PDF", (".pdf", ".ai"))),
    (0, b"\xd0\xcf\x11\xe0", Kind("document", "old office file", (".doc", ".xls", ".ppt", ".msg"))),
    (0, b"{\\rtf", Kind("document", "RTF", (".rtf", ".doc"))),
    (0, b"PK\x03\x04", Kind("archive", "zip archive", (".zip", ".whl", ".jar", ".skill"))),
    (0, b"PK\x05\x06", Kind("archive", "zip archive", (".zip",))),
    (0, b"\x1f\x8b", Kind("archive", "gzip archive", (".gz", ".tgz", ".svgz"))),
    (0, b"BZh", Kind("archive", "bzip2 archive", (".bz2", ".tbz"))),
    (0, b"\xfd7zXZ\x00", Kind("archive", "xz archive", (".xz", ".txz"))),
    (0, b"7z\xbc\xaf\x27\x1c", Kind("archive", "7z archive", (".7z",))),
    (0, b"Rar!\x1a\x07", Kind("archive", "RAR archive", (".rar",))),
    (0, b"\x28\xb5\x2f\xfd", Kind("archive", "zstd archive", (".zst",))),
    (257, b"ustar", Kind("archive", "tar archive", (".tar",))),
    (0, b"SQLite format 3\x00", Kind("data", "SQLite database", (".db", ".sqlite", ".sqlite3"))),
    (0, b"PAR1", Kind("data", "Parquet table", (".parquet",))),
    (0, b"\x93NUMPY", Kind("data", "NumPy array", (".npy",))),
    (0, b"ID3", Kind("media", "sound", (".mp3",))),
    (0, b"OggS", Kind("media", "sound", (".ogg", ".oga", ".ogv", ".opus"))),
    (0, b"fLaC", Kind("media", "sound", (".flac",))),
    (8, b"WAVE", Kind("media", "sound", (".wav",))),
    (4, b"ftyp", Kind("media", "film or picture", (".mp4", ".m4a", ".mov", ".heic", ".avif"))),
    (0, b"\x1aE\xdf\xa3", Kind("media", "film", (".mkv", ".webm"))),
)
_OFFICE = (".docx", ".xlsx", ".pptx", ".odt", ".ods", ".odp", ".epub", ".vsdx", ".dotx", ".potx")
_MACRO = (".docm", ".xlsm", ".pptm")
OFFICE = Kind("document", "office file", (*_OFFICE, *_MACRO))
TEXT = Kind("text", "text")
UNKNOWN = Kind("data", "binary file of an unknown kind")
_WIDE = (b"\xff\xfe", b"\xfe\xff")
_LOOKED_AT = 65_536


def kind_of(path: str, data: bytes) -> Kind:
    """Return the type of the file `path`.

    Text is UTF-16 with a byte order mark, or has no NUL bytes and is UTF-8 or has hardly any
    control characters.
    """
    if data[:2] == b"MZ" and b"PE\0\0" in data[:1024]:
        return Kind("program", "Windows program")
    for offset, magic, kind in _MAGIC:
        if data.startswith(magic, offset):
            return _zipped(path, data, kind) if kind.name == "zip archive" else kind
    if _is_bytecode(data):
        return Kind("bytecode", "compiled Python", (".pyc", ".pyo"))
    if data.startswith(_WIDE) or _is_text(data):
        return TEXT
    return UNKNOWN


def suffix_of(path: str) -> str:
    return PurePosixPath(path).suffix.lower()


def _zipped(path: str, data: bytes, kind: Kind) -> Kind:
    head = data[:4096]
    if b"[Content_Types].xml" in head or b"mimetypeapplication/" in head or b"_rels/" in head:
        return OFFICE
    return OFFICE if suffix_of(path) in _OFFICE and b"docProps/" in data else kind


def _is_bytecode(data: bytes) -> bool:
    # Compiled Python: a magic number, \r\n, flags, a time, a size and a marshalled code object.
    return len(data) > 16 and data[2:4] == b"\r\n" and bool({data[12], data[16]} & {0x63, 0xE3})


def _is_text(data: bytes) -> bool:
    if b"\0" in data:
        return False
    head = data[:_LOOKED_AT]
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        # Text in another encoding has no control characters except white space and escapes.
        if len(head) - error.start > 3 or len(data) <= _LOOKED_AT:
            return not any(byte < 9 or 13 < byte < 27 for byte in set(head))
    return True
