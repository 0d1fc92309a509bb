"""The support bundle: what helps to find the cause of a problem, without secrets.

Texts are masked twice: secrets that this installation knows are replaced wherever they occur, and
then what looks like a key. Of settings, only numbers and switches are shown. The log is left out if
this process cannot read a secret that may be in it.
"""

from __future__ import annotations

import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from importlib.metadata import distributions
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connection

from agents.doors.cli.errors import FAILED, CliError
from agents.features.operations.service.units import ENVIRONMENT_FILE
from agents.kernel.findings import Finding
from agents.kernel.settings import installed, settings_of
from agents.secret_text import SecretText, SecretTextField, SecretUnreadable
from agents.telemetry.spans import MASK, mask_secrets

LOG_LINES = 2_000
LOG_BYTES = 4_000_000
SHORTEST = 6
"""Shorter secrets are not searched for: they would occur in many words."""
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|HEADERS", re.IGNORECASE)
_OWN_NAME = re.compile(r"VEL_|DATABASE_URL$|DJANGO_|OTEL_|ANTHROPIC_|OPENAI_|GEMINI_|GOOGLE_|AWS_")


def write_bundle(path: Path, findings: Iterable[Finding], log: Path | None = None) -> None:
    """Write a new archive, which only this account can read.

    Args:
        path: The archive. It must not exist.
        findings: The report of `vel doctor`.
        log: The file with the log. By default, the log is read from the journal of the service.

    Raises:
        CliError: The archive exists or cannot be written, or the log cannot be read.
    """
    found = [asdict(finding) for finding in findings]
    parts: dict[str, Any] = {
        "findings.json": found,
        "versions.json": versions(),
        "settings.json": shown_settings(),
        "counts.json": counts(),
    }
    texts = {name: json.dumps(part, indent=1, default=str) for name, part in parts.items()}
    known, unreadable = known_secrets()
    text = last_lines(log)
    texts["log.txt"] = text if not unreadable else without_log(unreadable)
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        raise CliError(f"{path} exists. Choose another name.", exit_code=FAILED) from None
    except OSError as error:
        raise CliError(f"Cannot write {path}: {error.strerror}.", exit_code=FAILED) from None
    try:
        with os.fdopen(number, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
            for name, text in texts.items():
                data = masked(text, known).encode("utf-8", "replace")
                entry = tarfile.TarInfo(f"vel-support/{name}")
                entry.size, entry.mode, entry.mtime = len(data), 0o600, int(time.time())
                archive.addfile(entry, io.BytesIO(data))
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def masked(text: str, known: Iterable[str]) -> str:
    """Return `text` without the secrets in `known`, and without what looks like a key."""
    forms = {form for secret in known for form in _forms(secret)}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, MASK)
    return mask_secrets(text)


def _forms(secret: str) -> Iterator[str]:
    """Yield the secret as texts, JSON and URLs contain it."""
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield json.dumps(json.dumps(secret)[1:-1])[1:-1]
    yield quote(secret)
    yield quote(secret, safe="")


def without_log(unreadable: Iterable[str]) -> str:
    """Return the text in place of the log."""
    return (
        f"The log is left out, because it could contain secrets of {', '.join(unreadable)}, which "
        "this process cannot read. Run the command as the account and with the environment of the "
        "server, or as root.\n"
    )


def known_secrets() -> tuple[set[str], list[str]]:
    """Return the secrets of the environment, of the settings and of the database.

    Also returns the places whose secrets this process cannot read.
    """
    found: set[str] = set()
    unreadable: list[str] = []
    try:
        of_service = list(_of_service(Path(ENVIRONMENT_FILE)))
    except OSError:
        of_service = []
        unreadable.append(ENVIRONMENT_FILE)
    for name, value in (*os.environ.items(), *of_service):
        if _SECRET_NAME.search(name):
            found.add(value)
            found.update(re.split(r"[=,\s]+", value))
        found.update(_of_url(value))
    found.update(str(value) for value in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS))
    found.update(str(one.get("PASSWORD") or "") for one in settings.DATABASES.values())
    found.add(str(getattr(settings, "EMAIL_HOST_PASSWORD", "")))
    for declared in installed():
        for setting in settings_of(declared):
            value = getattr(declared.now(), setting.name)
            if setting.about.is_secret:
                found.update(_leaves(list(value) if isinstance(value, tuple) else value))
            elif isinstance(value, str):
                found.update(_of_url(value))
    try:
        found.update(_stored())
    except (DatabaseError, SecretUnreadable):
        unreadable.append("the database")
    return {one for one in found if len(one) >= SHORTEST}, unreadable


def _of_service(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the variables of the service, which this process need not have. Raises `OSError`."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        name, _, value = line.strip().partition("=")
        yield name, value.strip("\"'")


def _of_url(text: str) -> Iterator[str]:
    try:
        password = urlsplit(text).password if "://" in text else None
    except ValueError:  # not a URL
        return
    if password:
        yield password
        yield unquote(password)


def _stored() -> Iterator[str]:
    """Yield the encrypted secrets of all rows. Raises `SecretUnreadable`."""
    for model in apps.get_models():
        names = [each.name for each in model._meta.fields if isinstance(each, SecretTextField)]
        for row in model._base_manager.values_list(*names) if names else ():
            for value in row:
                if not isinstance(value, SecretText):
                    continue
                plain = value.reveal()
                yield plain
                yield from _of_url(plain)
                try:
                    yield from _leaves(json.loads(plain))
                except ValueError:
                    pass  # most secrets are not JSON


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _leaves(one)
    elif isinstance(value, list):
        for one in value:
            yield from _leaves(one)


def versions() -> dict[str, Any]:
    """Return the versions of the system and of the installed packages."""
    return {
        "python": sys.version,
        "system": platform.platform(),
        "database": connection.vendor,
        "packages": {each.name: each.version for each in distributions() if each.name},
    }


def shown_settings() -> dict[str, Any]:
    """Return the names of the settings, and the values of numbers and switches."""
    shown: dict[str, Any] = {}
    for declared in installed():
        for setting in settings_of(declared):
            try:
                value = getattr(declared.now(), setting.name)
            except ImproperlyConfigured:
                value = "(invalid)"
            is_harmless = isinstance(value, bool | int | float) and not setting.about.is_secret
            shown[setting.name] = value if is_harmless else "(set)" if value else "(not set)"
    environment = sorted(name for name in os.environ if _OWN_NAME.match(name))
    return {"settings": shown, "variables": environment}


def counts() -> dict[str, int | str]:
    """Return the number of rows of each table, or the name of the error that reading it raised."""
    found: dict[str, int | str] = {}
    for model in apps.get_models():
        try:
            found[model._meta.db_table] = model._base_manager.count()
        except DatabaseError as error:
            found[model._meta.db_table] = type(error).__name__
    return found


def last_lines(log: Path | None) -> str:
    """Return the end of the log, of the file `log` or of the journal of the service."""
    if log is not None:
        try:
            with log.open("rb") as file:
                file.seek(max(0, log.stat().st_size - LOG_BYTES))
                text = file.read(LOG_BYTES).decode("utf-8", "replace")
        except OSError as error:
            raise CliError(f"Cannot read {log}: {error.strerror}.", exit_code=FAILED) from None
    elif (journalctl := shutil.which("journalctl")) is not None:
        command = [journalctl, "--namespace=vel", "--no-pager", f"--lines={LOG_LINES}"]
        done = subprocess.run(command, capture_output=True, check=False)
        text = (done.stdout or done.stderr)[-LOG_BYTES:].decode("utf-8", "replace")
    else:
        return "No journal here. Name a file with --log.\n"
    return "".join(text.splitlines(keepends=True)[-LOG_LINES:])
