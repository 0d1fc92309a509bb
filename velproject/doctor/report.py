"""The checks of `vel doctor`. Each finding says how to repair the problem."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator

import django
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connection

from agents.documents.reader import PACKAGES as DOCUMENT_PACKAGES
from agents.documents.reader import lacking
from agents.doors.database_schema import (
    is_development_database,
    missing_migrations,
    protect_database_file,
    unknown_migrations,
)
from agents.kernel.features import collect
from agents.kernel.findings import system_checks
from agents.kernel.lazy_modules import lazy_modules
from agents.settings import DataSettings, UploadSettings
from sandbox.errors import SandboxError
from sandbox.linux.probe import check_host
from sandbox.toolboxes.contents import verify_toolbox
from sandbox.toolboxes.find import find_toolbox, toolbox_names
from velproject import env
from velproject.doctor.findings import Finding, Level

with lazy_modules:
    # Models can be imported only after Django's set-up, which may fail.
    from velproject.doctor import features, running, watching


_LOOKED_AT = ("vel.W001", "vel.W003", "vel.W005")
"""System checks whose subjects the doctor examines in more detail."""
FREE_BYTES = 1_000_000_000
"""Less free space than this causes a note."""


def examine(*, online: bool = False) -> Iterator[Finding]:
    """Yield each finding as soon as its check is done.

    If Django cannot start, checks that need it are omitted. With `online`, the provider is called.
    """
    yield check_python()
    yield check_data_directory()
    try:
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "velproject.settings")
        django.setup()
    except (ImproperlyConfigured, OSError) as error:
        yield Finding("settings", Level.BROKEN, str(error), "Fix this first, then run it again.")
        return
    yield from check_settings()
    database = check_database()
    yield database
    yield from check_sandbox()
    yield from check_toolboxes()
    for _, look in collect("doctor", "CHECKS"):
        yield from look()
    if database.level is Level.OK:
        yield from features.check_needed_toolboxes()
        yield from features.check_features()
        for _, look in collect("doctor", "DATABASE_CHECKS"):
            yield from look()
        yield running.check_workers()
        yield from watching.check_watching()
    yield running.check_model(online=online)


def check_python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding("python", Level.OK, f"{version} at {sys.executable}")


def check_data_directory() -> Finding:
    """Check that the data directory is writable and has free space."""
    directory = env.data_dir()
    try:
        env.make_private_directory(directory)
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(b"x" * 4096)
        free = shutil.disk_usage(directory).free
    except (OSError, ImproperlyConfigured) as error:
        return Finding(
            "data directory",
            Level.BROKEN,
            f"{directory}: {getattr(error, 'strerror', None) or error}",
            "Make it writable for this account, or set VEL_DATA_DIR.",
        )
    detail = f"{directory}, {free / 1e9:.1f} GB free"
    if free < FREE_BYTES:
        return Finding("data directory", Level.NOTE, detail, "Free some disk space.")
    return Finding("data directory", Level.OK, detail)


def check_settings() -> Iterator[Finding]:
    """Run Django's system checks and Vel's own, except those that other checks here examine."""
    yield from system_checks(lambda message: message.id not in _LOOKED_AT, "no problems")


def check_database() -> Finding:
    """Check that the database is reachable and migrated. Makes an SQLite file private."""
    name = f"{connection.vendor} {connection.settings_dict['NAME']}"
    try:
        protect_database_file()
        is_old = is_development_database()
        missing, unknown = missing_migrations(), unknown_migrations()
    except (DatabaseError, OSError) as error:
        return Finding(
            "database",
            Level.BROKEN,
            f"{name}: {' '.join(str(error).split())}",
            "Check DATABASE_URL, and that the server is running.",
        )
    if is_old:
        return Finding(
            "database",
            Level.BROKEN,
            f"{name} was created by a development version before 0.1.0",
            "Move it away, or use another database.",
        )
    if unknown:
        return Finding(
            "database",
            Level.BROKEN,
            f"{name} was prepared by a newer Vel ({unknown[-1]})",
            "Upgrade this installation.",
        )
    if missing:
        return Finding(
            "database",
            Level.NOTE,
            f"{name}: {len(missing)} migrations to apply",
            "The next command applies them, or run: vel migrate",
        )
    return Finding("database", Level.OK, name)


def check_sandbox() -> Iterator[Finding]:
    """Check that a command runs in a real sandbox, with every required limit."""
    report = check_host()
    for problem in report.problems:
        yield Finding(
            "sandbox", Level.BROKEN, problem, "Without a sandbox: vel --no-sandbox (only files)."
        )
    if report.usable:
        yield Finding(
            "sandbox",
            Level.OK,
            f"bubblewrap {report.bwrap_version}, seccomp {report.seccomp_architecture}",
        )
        kept = ", ".join(f"{limit.limit} ({limit.by})" for limit in report.limits)
        yield Finding("sandbox limits", Level.OK, kept)
        for limit in report.limits:
            if not limit.firm:
                yield Finding("sandbox limits", Level.NOTE, limit.weakness, limit.advice)
    for warning in report.warnings:
        yield Finding("sandbox", Level.NOTE, warning)
    if report.python is not None:
        yield Finding("sandbox python", Level.OK, str(report.python))


def check_toolboxes() -> Iterator[Finding]:
    """Check that each toolbox is unchanged, and that this host's Python can run it.

    Also checks that the toolbox for attached documents exists. Reads all files of the toolboxes.
    """
    base = DataSettings.now().toolboxes
    names = toolbox_names(base)
    documents = UploadSettings.now().DOCUMENTS_TOOLBOX
    if documents and documents not in names:
        yield Finding(
            f"toolbox {documents}",
            Level.NOTE,
            "missing: office files, PDFs and pictures that people send are not converted",
            f"vel toolbox create {documents} {' '.join(DOCUMENT_PACKAGES)}",
        )
    for name in names:
        try:
            toolbox = find_toolbox(base, name)
            problems = verify_toolbox(toolbox)
        except SandboxError as error:
            problems = [str(error)]
        for problem in problems:
            # Each problem says how to repair it: in most cases, build the toolbox again.
            yield Finding(f"toolbox {name}", Level.BROKEN, problem)
        if problems:
            continue
        if name == documents and (missing := lacking(toolbox)):
            yield Finding(
                f"toolbox {name}",
                Level.NOTE,
                f"without {', '.join(missing)}: some documents are not shown or converted",
                f"vel toolbox create {name} {' '.join(DOCUMENT_PACKAGES)} --replace",
            )
        else:
            detail = f"{', '.join(toolbox.packages)} for Python {toolbox.python}"
            yield Finding(f"toolbox {name}", Level.OK, f"{detail}, {toolbox.size / 1e6:.0f} MB")
