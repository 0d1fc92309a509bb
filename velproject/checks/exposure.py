"""Django system checks that refuse settings which expose this server to other machines.

`vel up`, `vel worker` and every management command run them. `check_exposure` reports errors only
if the settings themselves prove that other machines reach the server: by a name in ALLOWED_HOSTS
that does not mean this machine.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.core.exceptions import ImproperlyConfigured

from agents.kernel.lazy_modules import lazy_modules
from agents.settings import SecretSettings
from velproject.server_settings import ServerSettings

with lazy_modules:
    from sandbox.linux import probe  # every command imports this module, and few try a sandbox


SHORTEST_KEY = 32
_KNOWN_KEYS = ("not-a-secret", "django-insecure", "changeme", "change-me", "example")


def is_local(host: str) -> bool:
    """Return whether a host name or address can only mean this machine."""
    bare = host.strip("[]").lower()
    return bare in ("localhost", "::1") or bare.endswith(".localhost") or bare.startswith("127.")


@register(Tags.security)
def check_exposure(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Check the settings that must be safe if other machines can reach this server."""
    return unsafe_exposure([host for host in settings.ALLOWED_HOSTS if not is_local(host)])


def unsafe_exposure(hosts: Sequence[str]) -> list[CheckMessage]:
    """Return errors in the settings of a server that other machines reach under `hosts`.

    Returns an empty list if `hosts` is empty.
    """
    if not hosts:
        return []
    name = hosts[0]
    found: list[CheckMessage] = []
    if settings.DEBUG:
        found.append(
            Error(
                f"VEL_DEBUG is on and the server answers as {name}: error pages would show "
                "settings and source code to everybody.",
                hint="Unset VEL_DEBUG, or leave only local names in VEL_ALLOWED_HOSTS.",
                id="vel.E001",
            )
        )
    if weakness := weak_key(settings.SECRET_KEY):
        found.append(
            Error(
                f"VEL_SECRET_KEY {weakness} and the server answers as {name}: anybody who "
                "guesses it can sign in as any user.",
                hint="Unset VEL_SECRET_KEY: Vel then creates a key in its data directory.",
                id="vel.E002",
            )
        )
    if not settings.HTTPS and not ServerSettings.now().INSECURE_HTTP:
        found.append(
            Error(
                f"VEL_HTTPS is off and the server answers as {name}: passwords and tokens would "
                "cross the network unencrypted.",
                hint="Put a TLS proxy in front that sets X-Forwarded-Proto, and set VEL_HTTPS=1; "
                "or set VEL_INSECURE_HTTP=1 if you trust the network.",
                id="vel.E003",
            )
        )
    if "*" in hosts:
        found.append(
            Error(
                "VEL_ALLOWED_HOSTS is *: the server answers under any name, so other sites can "
                "point their names to it.",
                hint="Set it to the host names of this server.",
                id="vel.E004",
            )
        )
    return found


def weak_key(key: str) -> str:
    """Return why a secret key is weak, as the end of a sentence; empty if the key is good."""
    if not key:
        return "is empty"
    if len(key) < SHORTEST_KEY or len(set(key)) < 8:
        return (
            f"is short or monotonous ({len(key)} characters; {SHORTEST_KEY} random ones are needed)"
        )
    if any(word in key.lower() for word in _KNOWN_KEYS):
        return "is a published example"
    return ""


@register(Tags.security)
def check_secret_keys(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Check that nobody can guess the key that encrypts stored secrets."""
    try:
        keys = SecretSettings.now().SECRET_KEYS
    except ImproperlyConfigured:
        return []  # `check_vel_settings` reports this
    if not keys or not (weakness := weak_key(keys[0])):
        return []
    return [
        Error(
            f"The first key of VEL_SECRET_KEYS {weakness}: anybody with a copy of the database "
            "could read the passwords in it.",
            hint="Add a new key in front of it. Create one: openssl rand -base64 32",
            id="vel.E011",
        )
    ]


@register(Tags.security)
def check_accounts(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Check that the accounts of sandboxes can reach the data directory.

    A server that runs as root uses such accounts. For other servers, nothing is checked.
    """
    if os.geteuid() != 0:
        return []
    found: list[CheckMessage] = []
    closed = closed_directory(Path(settings.DATA_DIR))
    if closed is not None:
        found.append(
            Error(
                f"Vel runs as root, and the accounts of its sandboxes cannot pass through {closed} "
                f"to the data directory {settings.DATA_DIR}: no sandbox can reach its workspace.",
                hint=f"Set VEL_DATA_DIR to a directory such as /var/lib/vel, or run "
                f"`chmod o+x {closed}`, or start Vel as an ordinary user.",
                id="vel.E005",
            )
        )
    return found


def closed_directory(path: Path) -> Path | None:
    """Return the first directory of `path` that other accounts cannot enter, or None.

    `path` itself counts, too.
    """
    for place in (*reversed(path.parents), path):
        try:
            mode = place.stat().st_mode
        except FileNotFoundError:
            return None
        if not mode & stat.S_IXOTH:
            return place
    return None


@register(Tags.security)
def check_redis(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Check that each Redis of CHANNEL_LAYERS that is reached over the network has a password.

    Without one, others could wake and mislead workers.
    """
    found: list[CheckMessage] = []
    layers: dict[str, dict[str, Any]] = settings.CHANNEL_LAYERS
    for name, layer in layers.items():
        for host in layer.get("CONFIG", {}).get("hosts", []):
            if is_anonymous_redis(host):
                found.append(
                    Error(
                        f"CHANNEL_LAYERS[{name!r}] uses a Redis on the network without a password.",
                        hint="Write redis://:password@host:port/0, or use a Unix socket.",
                        id="vel.E007",
                    )
                )
    return found


def is_anonymous_redis(host: Any) -> bool:
    """Return whether a `hosts` entry of channels_redis is a network address without a password."""
    if isinstance(host, tuple | list):
        return True
    if isinstance(host, dict):
        return (
            "password" not in host
            and "path" not in host
            and is_anonymous_redis(host.get("address", "redis://unknown"))
        )
    parts = urlsplit(str(host))
    return parts.scheme != "unix" and not parts.password


@register(Tags.security, deploy=True)
def check_sandbox(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Check that commands can run in a sandbox, with limits that commands cannot exceed.

    Starts a real sandbox, so the check runs only on request (`check --deploy`).
    """
    report = probe.check_host()
    found: list[CheckMessage] = [Warning(problem, id="vel.W001") for problem in report.problems]
    for limit in report.limits:
        if not limit.firm:
            text = f"The {limit.limit} of commands is limited by {limit.by}: {limit.weakness}"
            found.append(Warning(text, hint=limit.advice, id="vel.W003"))
    return found


@register(Tags.database)
def check_database_file(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Check that only Vel's account can read SQLite's file.

    The file contains conversations, password hashes and sessions.
    """
    database = settings.DATABASES["default"]
    if not database["ENGINE"].endswith("sqlite3"):
        return []
    path = Path(database["NAME"])
    if not readable_by_others(path):
        return []
    return [
        Warning(
            f"Other accounts on this machine can read the database {path}.",
            hint=f"chmod 600 {path}*",
            id="vel.W002",
        )
    ]


def readable_by_others(path: Path) -> bool:
    """Return whether the file exists and its group or everybody has access to it."""
    return path.exists() and bool(path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))
