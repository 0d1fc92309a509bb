"""Find code that is hidden from readers."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

from skills_app.library.scan.finding import ScanFinding
from skills_app.library.scan.text import at

BLOB = 400
"""The length in characters from which base64 or hexadecimal text is suspicious."""
_BLOB = re.compile(rb"[A-Za-z0-9+/=_-]{%d,}|(?:\\x[0-9a-fA-F]{2}){60,}" % BLOB)
_IMAGE = re.compile(
    rb"data:(?:image|font|application/(?:font|x-font|pdf|octet))[^,]{0,60},\s*$|base64,\s*$"
)
_NAMES = re.compile(rb"\b_0x[0-9a-f]{4,6}\b")
MAX_BLOBS = 20


def obfuscation_findings(path: str, data: bytes) -> Iterator[ScanFinding]:
    """Yield findings for long texts of letters and digits, and for names that a tool generated."""
    for count, found in enumerate(_BLOB.finditer(data)):
        if count >= MAX_BLOBS:
            break
        stretch = found[0]
        if _IMAGE.search(data[max(0, found.start() - 100) : found.start()]):
            continue
        if entropy(stretch[:4096]) >= 4.0 or stretch.startswith(b"\\x"):
            message = f"{len(stretch):,} encoded characters in a row."
            span = (found.start(), found.start() + 80)
            yield at("warning", "blob", path, data, span, message)
            break
    names = _NAMES.findall(data[:200_000])
    if len(names) > 20:
        first = _NAMES.search(data)
        assert first is not None
        yield at(
            "warning",
            "obfuscated",
            path,
            data,
            first.span(),
            "Generated names that hide the purpose of code.",
        )


def entropy(data: bytes) -> float:
    """Return the entropy of `data` in bits per byte."""
    total = len(data)
    return -sum(count / total * math.log2(count / total) for count in Counter(data).values())
