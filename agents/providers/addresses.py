"""The addresses of the makers' own APIs, which require a key."""

from __future__ import annotations

from urllib.parse import urlsplit

OFFICIAL = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com/v1",
    "google": "https://generativelanguage.googleapis.com",
}
"""Addresses by maker."""


def is_official(maker: str, base_url: str) -> bool:
    """Return whether `base_url` is the maker's own API."""
    return urlsplit(base_url).hostname == urlsplit(OFFICIAL[maker]).hostname


def host_of(base_url: str) -> str:
    """Return the host of a URL, with its port if it names one."""
    url = urlsplit(base_url)
    return f"{url.hostname}:{url.port}" if url.port else str(url.hostname)


def origin_of(base_url: str) -> str:
    """Return the scheme, host and port of a URL, as `https://api.openai.com`.

    The port is omitted if it is the default of the scheme. Raises `ValueError` for a port that is
    no number.
    """
    url = urlsplit(base_url)
    host = url.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    is_default = url.port in (None, {"http": 80, "https": 443}.get(url.scheme))
    return f"{url.scheme}://{shown}" + ("" if is_default else f":{url.port}")
