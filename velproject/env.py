"""Conversion of URLs in environment variables to Django's settings."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from agents.sdk.environment.places import data_dir, make_private_directory, secret_key
from agents.settings.data import database

__all__ = [
    "channel_layers",
    "data_dir",
    "database",
    "mail_server",
    "make_private_directory",
    "secret_key",
    "storages",
]

_MAIL_PORTS = {"smtp": 25, "submission": 587, "smtps": 465}
_REDIS_SECONDS = 20.0
"""Longer than the 5 s that channels-redis waits for a message. The default of redis is as long as
the wait, so that each idle consumer would fail.
"""


def channel_layers(url: str) -> dict[str, Any]:
    """Return Django Channels' CHANNEL_LAYERS for the Redis at `url`; in memory for an empty URL.

    Accepts `redis://:password@host:port/0`, the same with `rediss` (TLS), and `unix:///socket`.

    Raises:
        ImproperlyConfigured: The URL is another one, or channels-redis is not installed.
    """
    if not url:
        return {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    parts = urlsplit(url)
    is_network = parts.scheme in ("redis", "rediss") and bool(parts.hostname)
    if not is_network and not (parts.scheme == "unix" and len(parts.path) > 1):
        raise ImproperlyConfigured(
            "Invalid VEL_REDIS_URL. Expected redis://:password@host:port/0, rediss:// for TLS, "
            "or unix:///socket."
        )
    if find_spec("channels_redis") is None:
        raise ImproperlyConfigured(
            "VEL_REDIS_URL needs the package channels-redis: pip install 'vel[redis]', or unset it."
        )
    return {
        "default": {
            "BACKEND": "channels_redis.core.RedisChannelLayer",
            "CONFIG": {"hosts": [{"address": url, "socket_timeout": _REDIS_SECONDS}]},
        }
    }


def storages(url: str) -> dict[str, Any]:
    """Return Django's STORAGES for `url`. Its entry `vel` is the storage that machines share.

    Accepts `s3://bucket/prefix?endpoint_url=…&region_name=…` (keys as boto3 finds them:
    AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, profiles, roles) and `file:///mounted/directory`.
    """
    found: dict[str, Any] = {
        "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }
    parts = urlsplit(url)
    if not url:
        return found
    if parts.scheme == "file" and not parts.netloc and len(parts.path) > 1:
        options: dict[str, Any] = {
            "location": unquote(parts.path),
            "file_permissions_mode": 0o600,
            "directory_permissions_mode": 0o700,
        }
        found["vel"] = {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": options,
        }
    elif parts.scheme == "s3" and parts.hostname:
        known = ("endpoint_url", "region_name")
        options = {name: value for name, value in parse_qsl(parts.query) if name in known}
        if len(options) != len(parse_qsl(parts.query)) or parts.username or parts.password:
            raise ImproperlyConfigured(
                "VEL_STORAGE_URL accepts only endpoint_url and region_name. Set keys in "
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
            )
        options |= {"bucket_name": parts.netloc, "location": parts.path.strip("/")}
        found["vel"] = {"BACKEND": "agents.s3_storage.PrivateS3", "OPTIONS": options}
    else:
        raise ImproperlyConfigured(
            "Invalid VEL_STORAGE_URL. Expected s3://bucket/prefix or file:///directory."
        )
    return found


def mail_server(url: str) -> dict[str, Any]:
    """Return Django's EMAIL settings for `url`; for an empty URL, port 25 of this machine.

    Accepts `submission://user:password@host` (STARTTLS, port 587), `smtps://user:password@host`
    (TLS from the start, port 465) and, without a password, `smtp://host` (port 25). Raises
    `ImproperlyConfigured` for another URL.
    """
    parts = urlsplit(url or "smtp://localhost")
    try:
        port = parts.port
    except ValueError:
        port = 0
    if parts.scheme not in _MAIL_PORTS or not parts.hostname or port == 0:
        raise ImproperlyConfigured(
            "Invalid EMAIL_URL. Expected submission://user:password@host, "
            "smtps://user:password@host or smtp://host, optionally with :port after the host."
        )
    if parts.scheme == "smtp" and parts.password:
        raise ImproperlyConfigured(
            "EMAIL_URL has a password, which smtp:// would send unencrypted. Use submission:// "
            "or smtps://."
        )
    return {
        "EMAIL_HOST": parts.hostname,
        "EMAIL_PORT": port or _MAIL_PORTS[parts.scheme],
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_TLS": parts.scheme == "submission",
        "EMAIL_USE_SSL": parts.scheme == "smtps",
    }
