"""Decode texts in dictionaries, such as titles and the values of fields."""

from __future__ import annotations

from typing import Any


def as_text(value: Any) -> str:
    """Return a PDF text string as text: UTF-16 or UTF-8 with a mark, else close to Latin-1."""
    if not isinstance(value, bytes):
        return "" if value is None else str(value)
    if value.startswith((b"\xfe\xff", b"\xff\xfe")):
        return value.decode("utf-16", "replace")
    if value.startswith(b"\xef\xbb\xbf"):
        return value[3:].decode("utf-8", "replace")
    return "".join(_PDF_DOC.get(byte, chr(byte)) for byte in value)


_PDF_DOC = {0x18 + at: character for at, character in enumerate("˘ˇˆ˙˝˛˚˜")} | {
    0x80 + at: character for at, character in enumerate("•†‡…—–ƒ⁄‹›−‰„“”‘’‚™ﬁﬂŁŒŠŸŽıłœšž\ufffd€")
}
