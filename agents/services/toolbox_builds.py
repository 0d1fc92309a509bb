"""Build and remove toolboxes on this host, on behalf of a person (docs/guides/toolboxes.md).

A build takes minutes, so a thread does it. A file in the data directory has its state, for all
processes of this host. There is one build at a time.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import PermissionsMixin
from django.db import transaction

from agents.services.audit import record
from agents.services.errors import Conflict, InvalidRequest, NotAllowed, NotFound
from agents.settings import DataSettings
from sandbox.errors import SandboxError
from sandbox.toolboxes.build import (
    IfPresent,
    ToolboxRequest,
    check_requirement,
    create_toolbox,
)
from sandbox.toolboxes.environment import PipFailed
from sandbox.toolboxes.find import toolbox_names
from sandbox.toolboxes.store import open_store
from sandbox.toolboxes.toolbox import check_name

logger = logging.getLogger(__name__)

CONFIGURE = "agents.configure_sandbox"
MOST_PACKAGES = 200
DETAIL_CHARACTERS = 4_000
_LOCK = "lock"
_OF_AN_INDEX = re.compile(r"[A-Za-z0-9][^/@\\]*")
"""A package of an index. Paths and URLs are for people with an account on this host."""


@dataclass(frozen=True, slots=True)
class BuildState:
    """The state of the last build that was requested on this host for a toolbox.

    `detail` is for operators.
    """

    state: Literal["none", "building", "built", "failed"]
    detail: str = ""


def may_manage_toolboxes(user: AbstractBaseUser) -> bool:
    """Return whether `user` may build and remove toolboxes: staff who may configure sandboxes."""
    staff = bool(getattr(user, "is_staff", False))
    return staff and isinstance(user, PermissionsMixin) and user.has_perm(CONFIGURE)


def start_build(
    name: str, packages: Sequence[str], *, replace: bool = False, by: AbstractBaseUser
) -> None:
    """Start to build a toolbox with wheels of these packages, from pip's own index.

    With `replace`, a toolbox with this name is replaced. Raises `NotAllowed`, `InvalidRequest` for
    a name or a package that is not accepted, and `Conflict` if another build runs or, without
    `replace`, if the toolbox exists.
    """
    _must_manage(by)
    _check(name, packages)
    if name in toolbox_names(DataSettings.now().toolboxes) and not replace:
        raise Conflict(f"There is a toolbox {name!r}: replace it, or choose another name.")
    lock = _take_lock()
    if lock is None:
        raise Conflict("Another toolbox is being built: wait for it.", code="build_running")
    try:
        with transaction.atomic():
            changes = {"packages": (None, list(packages))}
            record("toolbox.build_started", "toolbox", name=name, by=by, changes=changes)
        _write(name, BuildState("building"))
        request = ToolboxRequest(name, tuple(packages))
        building = threading.Thread(
            target=_build, args=(request, lock), name=f"toolbox {name}", daemon=True
        )
        building.start()
    except BaseException:
        os.close(lock)
        raise


def build_state(name: str) -> BuildState:
    """Return the state of the last build that was requested on this host for the toolbox `name`."""
    try:
        state = BuildState(**json.loads(_file(name).read_text()))
    except (OSError, ValueError, TypeError):
        return BuildState("none")
    if state.state != "building":
        return state
    lock = _take_lock()
    if lock is None:
        return state
    os.close(lock)
    return BuildState("failed", "The server was stopped during the build: start it again.")


def remove_toolbox(name: str, *, by: AbstractBaseUser) -> None:
    """Remove a toolbox. Runs that use it keep its files until they end.

    Raises `NotAllowed`, `NotFound`, and `Conflict` during a build.
    """
    _must_manage(by)
    base = DataSettings.now().toolboxes
    if name not in toolbox_names(base):
        raise NotFound(f"There is no toolbox {name!r} on this host.")
    lock = _take_lock()
    if lock is None:
        raise Conflict("A toolbox is being built: wait for it.", code="build_running")
    try:
        with transaction.atomic(), open_store(base) as store:
            record("toolbox.removed", "toolbox", name=name, by=by)
            store.remove(name)
        _file(name).unlink(missing_ok=True)
    except SandboxError as error:
        raise Conflict(str(error)) from None
    finally:
        os.close(lock)


def _must_manage(by: AbstractBaseUser) -> None:
    if not may_manage_toolboxes(by):
        raise NotAllowed(
            f"Managing toolboxes requires staff status and the permission {CONFIGURE}."
        )


def _check(name: str, packages: Sequence[str]) -> None:
    try:
        check_name(name)
    except SandboxError as error:
        raise InvalidRequest(f"name: {error}") from None
    if not packages or len(packages) > MOST_PACKAGES:
        raise InvalidRequest(f"packages: Name 1 to {MOST_PACKAGES} packages.")
    for each in packages:
        if not _OF_AN_INDEX.fullmatch(each) or each.endswith(".whl"):
            raise InvalidRequest(
                f"packages: {each[:100]!r} is no package of an index, as pandas or pandas>=2."
            )
        try:
            check_requirement(each)
        except SandboxError as error:
            raise InvalidRequest(f"packages: {error}") from None


def _build(request: ToolboxRequest, lock: int) -> None:
    try:
        create_toolbox(DataSettings.now().toolboxes, request, IfPresent.REPLACE)
        state = BuildState("built")
    except PipFailed as error:
        state = BuildState("failed", f"{error}\n{error.output}"[-DETAIL_CHARACTERS:])
    except (SandboxError, OSError) as error:
        state = BuildState("failed", str(error)[:DETAIL_CHARACTERS])
    except Exception:
        logger.exception("the toolbox %s was not built", request.name)
        state = BuildState("failed", "This failed on the side of the server and was logged.")
    try:
        _write(request.name, state)
    finally:
        os.close(lock)


def _directory() -> Path:
    directory = DataSettings.now().DATA_DIR / "toolbox-builds"
    directory.mkdir(mode=0o700, exist_ok=True)
    return directory


def _file(name: str) -> Path:
    return _directory() / f"{name}.json"


def _write(name: str, state: BuildState) -> None:
    fresh = _directory() / f".{name}"
    fresh.write_text(json.dumps(asdict(state)))
    fresh.replace(_file(name))


def _take_lock() -> int | None:
    """Return a descriptor that excludes other builds until it is closed, or None."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    lock = os.open(_directory() / _LOCK, flags, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock
