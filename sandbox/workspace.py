"""The files of a thread (a conversation) on disk, and the policy that mounts them for commands."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sandbox.directories.owned import make, opened
from sandbox.errors import SandboxSetupError
from sandbox.host_paths import writable_directory
from sandbox.linux.namespace import PYTHON
from sandbox.own_directory.guard import DirectoryGuard
from sandbox.own_directory.inventory import Inventory
from sandbox.own_directory.rules import FileRules
from sandbox.paths import AREAS, FAMILY_AREAS, READ_ONLY_AREAS, SANDBOX_ROOT, WORKING_DIR
from sandbox.policy import Limits, Mount, Network, SandboxPolicy
from sandbox.reach import unreachable_directory
from sandbox.toolboxes.toolbox import PYTHON_IN_IT, VARIABLES, Toolbox
from sandbox.uids import uid_for

__all__ = ["Workspace", "own_directory_account", "prepare", "uid_for"]

_KEY = re.compile(r"[A-Za-z0-9_-]{1,128}")
_SUBDIRECTORIES = (*AREAS, "shared/research", "shared/drafts")


@dataclass(frozen=True, slots=True)
class Workspace:
    """The files of one thread (a conversation): `root` with the areas of `sandbox.paths` in it.

    The tree belongs to `uid`, and no other account can enter it (mode 0700). Only the areas are
    mounted, never the root itself, so no command can replace an area by a link.

    Attributes:
        own_directory: A directory of the caller that replaces the area `workspace`.
        family: The root of the parent's workspace, which provides user_uploads, shared and outputs
            of a subagent.
        read_only: Whether nothing can be changed through this object.
        rules: Which files of `own_directory` commands may change.
    """

    root: Path
    uid: int
    gid: int
    own_directory: Path | None = None
    skills: Path | None = None
    """A directory of skills that replaces the area `skills`. None: the tree's own empty area."""
    family: Path | None = None
    read_only: bool = False
    rules: FileRules = field(default_factory=FileRules)

    @property
    def directories(self) -> dict[str, Path]:
        """Return the directory on the host for each area of `sandbox.paths`."""
        found = {area: self.root / area for area in AREAS}
        if self.family is not None:
            found |= {area: self.family / area for area in FAMILY_AREAS}
        if self.own_directory is not None:
            found["workspace"] = self.own_directory
        if self.skills is not None:
            found["skills"] = self.skills
        return found

    def guard(self, keep: Callable[[Inventory], None] | None = None) -> DirectoryGuard | None:
        """Return a new guard of the own directory, for both commands and file tools.

        Returns None if there is nothing to guard. `keep` is as in `DirectoryGuard`.
        """
        if self.own_directory is None or self.read_only:
            return None
        return DirectoryGuard(self.own_directory, WORKING_DIR, self.rules, keep)

    def policy(
        self,
        *,
        timeout: float = 30.0,
        network: Network = Network.NONE,
        limits: Limits | None = None,
        environment: tuple[tuple[str, str], ...] = (),
        extra_mounts: tuple[Mount, ...] = (),
        toolbox: Toolbox | None = None,
    ) -> SandboxPolicy:
        """Return the policy for commands of this workspace.

        Commands see the areas below /sandbox, start in /sandbox/workspace, and run as the owner.
        `skills` (also at /skills) and `user_uploads` are read-only. With a `toolbox`, its Python
        comes first in PATH; the caller must hold the toolbox as long as commands run.
        """
        areas = tuple(
            Mount(
                directory,
                f"{SANDBOX_ROOT}/{area}",
                writable=area not in READ_ONLY_AREAS and not self.read_only,
                foreign=directory == self.own_directory,
                rules=self.rules,
            )
            for area, directory in self.directories.items()
        )
        skills = Mount(self.directories["skills"], "/skills")
        return SandboxPolicy(
            mounts=(*areas, skills, *extra_mounts, *(toolbox.mounts if toolbox else ())),
            working_dir=WORKING_DIR,
            timeout=timeout,
            network=network,
            limits=limits or Limits(),
            environment=(*(VARIABLES if toolbox else ()), *environment),
            uid=self.uid,
            gid=self.gid,
            python=PYTHON_IN_IT if toolbox else PYTHON,
            # No program of the host listens in these directories: only Vel and its commands write
            # there.
            unix_sockets=self.own_directory is None and not extra_mounts,
        )


def prepare(
    base: Path,
    key: str,
    uid: int | None = None,
    *,
    own_directory: Path | None = None,
    family: str = "",
) -> Workspace:
    """Return the workspace `base/key`; create it if it is missing or incomplete.

    Raises `SandboxSetupError`. A tree that belongs to another account is never taken over.

    Args:
        base: A directory that the operator has chosen. It is created if it is missing and may be a
            link; below it, no link is followed. `uid` must be able to reach it.
        uid: The owner of the tree. For root, an unprivileged account (`uid_for(n)`); None keeps the
            owner of an existing tree. For all other callers, None or the caller's own uid. The gid
            has the number of the uid for root, and is otherwise the caller's own.
        own_directory: Replaces the area `workspace`. Commands run as its owner, and its mode does
            not change.
        family: The key of another workspace of the same account, which is created too; its
            `FAMILY_AREAS` are used for this one.
    """
    if own_directory is not None:
        uid = own_directory_account(own_directory)
    if not _KEY.fullmatch(key):
        raise SandboxSetupError(
            f"Invalid workspace key {key!r}. Use 1 to 128 letters, digits, '-' or '_'."
        )
    shared = prepare(base, family, uid) if family else None
    base = base.resolve()
    _make_base(base)
    with opened(base) as parent:
        owner = _owner(parent, key, uid)
        root = base / key
        if os.geteuid() == 0:
            _check_reachable(base, owner)
        make(parent, key, owner)
        with opened(key, parent) as top:
            for name in _SUBDIRECTORIES:
                _make_below(top, name, owner)
    if shared is not None and shared.uid != owner:
        raise SandboxSetupError(
            f"The workspaces {key} and {family} belong to two accounts, so they cannot share files."
        )
    above = shared.root if shared is not None else None
    return Workspace(root, owner, _group(owner), own_directory, family=above)


def own_directory_account(directory: Path) -> int:
    """Return the account that runs commands in a caller's own directory.

    Raises `SandboxSetupError` if the path is not a directory, belongs to root or the machine, or
    cannot be entered by that account.
    """
    writable_directory(directory)
    try:
        status = os.stat(directory)
    except OSError as error:
        raise SandboxSetupError(
            f"The workspace {directory} cannot be used: {error.strerror}."
        ) from error
    if not stat.S_ISDIR(status.st_mode):
        raise SandboxSetupError(f"The workspace {directory} is not a directory.")
    if status.st_uid == 0:
        raise SandboxSetupError(
            f"The workspace {directory} belongs to root, and commands run as its owner. Give it "
            f"to an unprivileged account: chown -R nobody {directory}"
        )
    if os.geteuid() == 0:
        closed = unreachable_directory(directory, status.st_uid)
        if closed is not None:
            raise SandboxSetupError(
                f"The workspace {directory} cannot be used: its owner, uid {status.st_uid}, "
                f"cannot enter {closed}."
            )
    return status.st_uid


def _make_base(base: Path) -> None:
    try:
        try:
            base.mkdir(parents=True)
        except FileExistsError:
            if base.is_dir():
                return
            raise
        # Independent of the umask: sandbox accounts may pass through the directory, but not list
        # it.
        base.chmod(0o711 if os.geteuid() == 0 else 0o700)
    except OSError as error:
        raise SandboxSetupError(
            f"The directory for workspaces, {base}, cannot be created: {error.strerror}. "
            "Set another data directory; root keeps it under /var/lib/vel."
        ) from error


def _owner(parent: int, key: str, uid: int | None) -> int:
    own = os.geteuid()
    if own != 0:
        if uid not in (None, own):
            raise SandboxSetupError(
                f"The workspace {key} cannot belong to uid {uid}: this process is uid {own}, "
                "and only root can give files to another account. Leave the uid empty."
            )
        return own
    if uid is None:
        try:
            uid = os.stat(key, dir_fd=parent, follow_symlinks=False).st_uid
        except FileNotFoundError:
            uid = 0
    if uid == 0:
        raise SandboxSetupError(
            f"The workspace {key} would belong to root, and commands run as its owner. Give an "
            "unprivileged uid, e.g. sandbox.workspace.uid_for(number of the thread)."
        )
    return uid


def _group(owner: int) -> int:
    return owner if os.geteuid() == 0 else os.getegid()


def _check_reachable(base: Path, uid: int) -> None:
    closed = unreachable_directory(base, uid)
    if closed is not None:
        raise SandboxSetupError(
            f"Workspaces cannot be kept in {base}: as root, commands run as uid {uid}, which "
            f"cannot enter {closed}. Use a data directory that every account can enter, such as "
            "/var/lib/vel."
        )


def _make_below(top: int, name: str, owner: int) -> None:
    first, _, second = name.partition("/")
    if not second:
        make(top, first, owner)
        return
    with opened(first, top) as parent:
        try:
            make(parent, second, owner)
        except SandboxSetupError:
            # Commands can write in `first` and put a file or a link at this path. It is up to them
            # to repair that; the workspace must stay usable.
            pass
