"""Cache a migrated database without rows.

The next program copies it, which saves the second that migrations take.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from pathlib import Path

import django
from django.apps import apps


def begin_with_template(file: Path) -> bool:
    """Copy the cached database to `file`. Return whether `file` exists then.

    `file` must not exist; another process may create it at the same moment. Returns False if there
    is no cached database, if other users could have written it, or if it cannot be copied, for
    example on a file system without hard links.
    """
    template = _place()
    if template is None or not _is_ours(template):
        return False
    fresh = file.with_name(f"{file.name}.{os.getpid()}.new")
    try:
        descriptor = os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "wb") as target, template.open("rb") as source:
            shutil.copyfileobj(source, target)
        os.link(fresh, file)  # atomic: complete, or not at all
    except FileExistsError:
        pass  # another process has created the file in the same moment
    except OSError:
        return False
    finally:
        fresh.unlink(missing_ok=True)
    return True


def keep_as_template(file: Path) -> None:
    """Cache a copy of the database `file`, which was just created. Errors are ignored."""
    template = _place()
    if template is None:
        return
    fresh = template.with_name(f"{template.name}.{os.getpid()}")
    try:
        template.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with sqlite3.connect(file) as connection:
            connection.execute("VACUUM INTO ?", [str(fresh)])
        connection.close()
        fresh.chmod(0o600)
        fresh.replace(template)
    except (OSError, sqlite3.Error):
        fresh.unlink(missing_ok=True)


def _place() -> Path | None:
    """Return the path of the cached database, None if the account has no home directory.

    The path depends on Django's version and the content of the migrations.
    """
    digest = hashlib.sha256(django.__version__.encode())
    for config in sorted(apps.get_app_configs(), key=lambda one: one.label):
        for file in sorted((Path(config.path) / "migrations").glob("[0-9]*.py")):
            digest.update(f"{config.label}/{file.name}\0".encode() + file.read_bytes())
    try:
        cache = os.environ.get("XDG_CACHE_HOME", "").strip() or Path.home() / ".cache"
    except RuntimeError:
        return None
    return Path(cache) / "vel" / f"empty-{digest.hexdigest()[:32]}.sqlite3"


def _is_ours(template: Path) -> bool:
    """Return whether the file exists and other users could not have written it."""
    try:
        status = template.lstat()
        above = template.parent.stat()
    except OSError:
        return False
    mine = status.st_uid == above.st_uid == os.geteuid()
    return mine and template.is_file() and not template.is_symlink() and not above.st_mode & 0o022
