"""Find web and mail addresses, and the addresses that seem made for collecting data."""

# Long expressions stay on one line each, so that they can be searched for.

from __future__ import annotations

from functools import lru_cache

from text_scanner.concepts import C
from text_scanner.linear import compile_linear

URL = compile_linear(rb"\b(?:https?|ftp|wss?|hxxps?)://[^\s<>\"'`|\\)\]}]+")
EMAIL = compile_linear(
    rb"[a-z0-9._%+-]{1,64}@[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})*\.[a-z]{2,24}\b", any_case=True
)
HOST = compile_linear(
    rb"\b(?:[a-z0-9-]{1,63}\.){1,6}(?:com|net|org|io|example|test|invalid|xyz|top|ru|cn|site|online|app|dev|biz|info|tk|ml|cc|sh|co|me|ws|pw|click|link|live|space|icu|de|fr|es|it|nl|jp)\b(?:/[^\s<>\"'`|\\)\]}]*)?"
    rb"|\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?::\d{1,5})?\b"
)
_SHADY = compile_linear(
    rb"evil|attacker|exfil|malicious|steal|hacker|phish|collect(?:or)?\.|collect-|-collect|drop(?:box|zone|s)?[.-]|leak|ngrok|webhook\.site|"
    rb"pastebin|requestbin|pipedream|burpcollab|oastify|interact\.sh|transfer\.sh|\.onion|0x0\.st|"
    rb"bit\.ly|tinyurl|loot|pwn|c2\.|\.(?:xyz|top|tk|ml|icu|pw|click|zip|ru|su|cc|biz|gq)(?::|$)|"
    rb"^\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}|protonmail\.|mailinator|"
    rb"tutanota|trycloudflare|serveo|grabify|iplogger|mirror-|audit-?(?:copy|box)|backup-?(?:box|mail)",
    any_case=True,
)

_COMMON = (b".com", b".net", b".org", b".example")
_URL = int(C.URL)
_PLAIN = int(C.PLAIN_HTTP)
_EMAIL = int(C.EMAIL)
_SHADY_BIT = int(C.SHADY)
_OWN = compile_linear(
    rb"://(?:localhost|127\.0\.0\.1|0\.0\.0\.0|10\.|192\.168\.|\[::1\]|[a-z0-9-]+(?::\d+)?(?:/|$))|\.local\b|\.internal\b|\.localhost\b|^(?:127|10|192\.168|172\.16|0\.0)\."
)


def addresses(data: bytes) -> list[tuple[int, int, int]]:
    """Return (start, end, classes) of each address in `data`.

    The offsets are in bytes. `classes` are bits of `concepts.C`. Addresses may overlap.
    """
    found: list[tuple[int, int, int]] = []
    if b"://" in data:
        for match in URL.finditer(data):
            start, end = match.span()
            while end > start and data[end - 1] in b".,;:!?*_":
                end -= 1
            found.append(
                (
                    start,
                    end,
                    _URL | _looks(data[start : min(end, start + 200)]) | _shape(data, start, end),
                )
            )
    if b"@" in data:
        for match in EMAIL.finditer(data):
            start, end = match.span()
            found.append((start, end, _EMAIL | _looks(data[start:end])))
    if b"." in data:
        for match in HOST.finditer(data):
            start, end = match.span()
            looks = _looks(data[start : min(end, start + 200)])
            # A host without a path is one word: "docs.partner.example" is not an "example".
            named = b"/" in data[start:end] or data[start:end].endswith(_COMMON)
            found.append((start, end, (_URL if looks or named else 0) | looks))
    return found


def _shape(data: bytes, start: int, end: int) -> int:
    # An address that ends in "=" is ready for data to be appended.
    waits = _SHADY_BIT if data[end - 1 : end] == b"=" else 0
    open_to_all = data.startswith(b"http://", start) and not _OWN.search(
        data[start : min(end, start + 200)]
    )
    return waits | (_PLAIN if open_to_all else 0)


@lru_cache(maxsize=4096)
def _looks(address: bytes) -> int:
    if _OWN.search(address):
        return 0
    host = address.split(b"://", 1)[-1].split(b"/", 1)[0].split(b"?", 1)[0]
    return _SHADY_BIT if _SHADY.search(host) else 0
