"""Environment variables of Vel's own project. Projects that embed Vel have Django's settings."""

from typing import Annotated
from urllib.parse import urlsplit

from agents.kernel.settings import About, FeatureSettings, Positive, split

_FORMATS = ("line", "json")
_ORIGINS = "origins like https://app.example.org, separated by commas"


def log_format(text: str) -> str:
    """Return a known format of log lines. Raises `ValueError`."""
    if text.lower() not in _FORMATS:
        raise ValueError(" or ".join(_FORMATS))
    return text.lower()


def origins(text: str) -> tuple[str, ...]:
    """Return the origins in `text`, separated by commas, in lower case. Raises `ValueError`.

    A default port stays, but browsers do not send it: such an origin never matches.
    """
    found = []
    for item in split(text):
        parts = urlsplit(item.lower())
        origin = f"{parts.scheme}://{parts.netloc}"
        if parts.scheme not in ("http", "https") or not parts.hostname or origin != item.lower():
            raise ValueError(_ORIGINS)
        if "*" in origin or "@" in origin:
            raise ValueError(_ORIGINS)
        found.append(origin)
    return tuple(found)


class ServerSettings(FeatureSettings):
    """Vel's own server

    These are environment variables only: a project of your own has Django's settings instead.
    """

    DICTIONARY = ""

    DATABASE_URL: Annotated[
        str,
        About(
            variables=("DATABASE_URL",),
            is_secret=True,
            default="`vel.sqlite3` in the data directory",
        ),
    ] = ""
    """`sqlite:////absolute/path` or `postgresql://user:password@host/name`."""
    SECRET_KEY: Annotated[
        str,
        About(is_secret=True, default="created once, kept in the data directory with mode 0600"),
    ] = ""
    """Signs sessions, and encrypts stored secrets if `VEL_SECRET_KEYS` is not set."""
    ALLOWED_HOSTS: tuple[str, ...] = ("localhost", "127.0.0.1", "[::1]")
    """Host names under which the server answers."""
    TRUSTED_ORIGINS: tuple[str, ...] = ()
    """Origins of forms and WebSockets behind a proxy, like `https://vel.example.org`."""
    CORS_ORIGINS: Annotated[tuple[str, ...], About(parse=origins, expected=_ORIGINS)] = ()
    """Origins whose pages may use the REST API with a token, like `https://app.example.org`
    ([pages of another origin](rest-api.md#cross-origin-requests))."""
    HTTPS: bool = False
    """A proxy in front speaks TLS and sets `X-Forwarded-Proto`."""
    HSTS_SECONDS: Annotated[int, About(unit="seconds", at_least=0)] = 0
    """How long browsers insist on HTTPS."""
    INSECURE_HTTP: bool = False
    """Allow plain HTTP on a network that you trust."""
    DEBUG: bool = False
    """Django's debug pages. Only for your own machine."""
    WORKERS: Positive = 2
    """Worker processes."""
    QUEUE: str = "vel"
    """Name of the workers' queue."""
    CONNECTIONS: Positive = 2_000
    """Connections of one web process at the same time
    ([limits](limits.md#connections-of-the-web-server))."""
    STORAGE_URL: Annotated[str, About(is_secret=True)] = ""
    """The storage that several machines share ([scaling](../operations/scaling.md)): `s3://…` or `file:///…`."""
    REDIS_URL: Annotated[str, About(is_secret=True, default="memory of each process")] = ""
    """The channel layer for [apps of your own](../operations/deploy.md#redis):
    `redis://:password@host:port/0`. Vel itself uses no Redis."""
    EMAIL_URL: Annotated[
        str,
        About(variables=("EMAIL_URL",), is_secret=True, default="port 25 of this machine"),
    ] = ""
    """The mail server: `submission://user:password@host` (STARTTLS), `smtps://user:password@host`
    or `smtp://host`."""
    EMAIL_FROM: str = "vel@localhost"
    """Sender of e-mails."""
    LOG_FORMAT: Annotated[str, About(parse=log_format, expected="line or json")] = "line"
    """`json`: one object in each line ([logs](../operations/monitoring.md#logs))."""
    LOG_LEVEL: Annotated[str, About(default="`INFO`; `ERROR` for commands in the terminal")] = (
        "INFO"
    )
    """The lowest level of log lines."""
