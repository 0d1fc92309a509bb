"""Addresses of the pages, limits of people, tokens and addresses, and the terminal."""

from typing import Annotated
from urllib.parse import urlsplit

from agents.kernel.settings import About, Count, FeatureSettings, Seconds

_EXPECTED = "a URL like https://vel.example.org"
_NOTICES = ("bell", "osc9", "osc777", "off")


def public_url(text: str) -> str:
    """Return the URL without a slash at its end.

    Raises `ValueError` unless it is an http or https URL with a host, without query and fragment.
    """
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(_EXPECTED)
    return text.rstrip("/")


class PageSettings(FeatureSettings):
    """Addresses of the pages"""

    PUBLIC_URL: Annotated[
        str,
        About(
            parse=public_url,
            expected=_EXPECTED,
            default="with `vel up` its own address, else `http://127.0.0.1:8000`",
        ),
    ] = "http://127.0.0.1:8000"
    """The URL of the pages for people. Links in notifications start with it."""
    SOCKETS: Annotated[str, About(variables=())] = "/ws/"
    """Where browsers find the WebSockets of the pages, in [your own
    project](../guides/embedding.md)."""
    TRUSTED_PROXIES: Count = 0
    """The number of proxies in front that append to `X-Forwarded-For`. The audit log and the limits
    of addresses use the entry at this position from the right. Set it only if direct connections
    are impossible."""


class LimitSettings(FeatureSettings):
    """Limits of people, tokens and addresses

    0 means no limit. See [limits](limits.md) and [the API](rest-api.md#limits).
    """

    SIGN_INS: Annotated[Count, About(unit="attempts a minute")] = 10
    """Sign-in with one name from one address, and a person's old password when it is changed."""
    ADDRESS_SIGN_INS: Annotated[Count, About(unit="attempts a minute")] = 60
    """Sign-in from one address, with all names together."""
    API_USER_REQUESTS: Annotated[Count, About(unit="requests a minute")] = 1_200
    """Requests to the API of one person, from all tokens and pages."""
    API_TOKEN_REQUESTS: Annotated[Count, About(unit="requests a minute")] = 600
    """Requests to the API with one token."""
    API_FAILED_SIGN_INS: Annotated[Count, About(unit="requests a minute")] = 60
    """Invalid tokens from one address that are answered 401; more are answered 429."""
    STREAMS_PER_USER: Count = 32
    """[Event streams](../guides/streams.md) over HTTP of one person in one web process."""
    CONNECTIONS_PER_USER: Count = 100
    """[Lasting connections](limits.md#connections-of-the-web-server) of one person in one web
    process: WebSockets, event streams, downloads and waiting MCP calls."""
    CONNECTIONS_PER_TOKEN: Count = 50
    """The same for one token."""


def notice(text: str) -> str:
    """Return a known kind of notice. Raises `ValueError`."""
    if text.lower() not in _NOTICES:
        raise ValueError(", ".join(_NOTICES))
    return text.lower()


class TerminalSettings(FeatureSettings):
    """The terminal

    See [the command line](../guides/command-line.md#notices).
    """

    NOTICE: Annotated[str, About(parse=notice, expected="bell, osc9, osc777 or off")] = "bell"
    """How `vel` reports at a terminal that a long task has ended or waits for you: a `bell`, a
    notification of the desktop with the sequence OSC 9 or OSC 777, or `off`."""
    NOTICE_SECONDS: Seconds = 30.0
    """Tasks that took less time cause no notice."""
