"""The files of one thread on disk, and the policy that shows them to commands."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sandbox.errors import SandboxSetupError
from sandbox.host_paths import writable_directory
from sandbox.namespace import PYTHON
from sandbox.own_directory.guard import DirectoryGuard
from sandbox.own_directory.inventory import Inventory
from sandbox.own_directory.rules import FileRules
from sandbox.owned_directories import make, opened
from sandbox.paths import AREAS, FAMILY_AREAS, READ_ONLY_AREAS, SANDBOX_ROOT, WORKING_DIR
from sandbox.policy import Limits, Mount, Network, SandboxPolicy
from sandbox.reach import unreachable_directory
from sandbox.toolbox import PYTHON_IN_IT, VARIABLES, Toolbox
from sandbox.uids import uid_for

__all__ = ["Workspace", "own_directory_account", "prepare", "uid_for"]

_KEY = re.compile(r"[A-Za-z0-9_-]{1,128}")
_SUBDIRECTORIES = (*AREAS, "shared/research", "shared/drafts")


@dataclass(frozen=True, slots=True)
class Workspace:
    """A prepared tree: `root` with the areas of `sandbox.paths` in it, all owned by `uid`.

    Nobody else can enter it (mode 0700). The root itself is never mounted, only the areas, so no
    command can replace an area by a link. `own_directory` is a directory of the caller's that is
    the area `workspace` instead; `rules` say what of it commands may change. `family` is the root
    of the tree whose user_uploads, shared and outputs it has. With `read_only` nothing of it can be
    changed through this object.
    """

    root: Path
    uid: int
    gid: int
    own_directory: Path | None = None
    skills: Path | None = None
    """A directory of packages that is the area `skills`. None: the empty one of the tree."""
    family: Path | None = None
    read_only: bool = False
    rules: FileRules = field(default_factory=FileRules)

    @property
    def directories(self) -> dict[str, Path]:
        """Where each area of `sandbox.paths` lies on the host."""
        found = {area: self.root / area for area in AREAS}
        if self.family is not None:
            found |= {area: self.family / area for area in FAMILY_AREAS}
        if self.own_directory is not None:
            found["workspace"] = self.own_directory
        if self.skills is not None:
            found["skills"] = self.skills
        return found

    def guard(self, keep: Callable[[Inventory], None] | None = None) -> DirectoryGuard | None:
        """A new guard of the own directory, to be shared by commands and file tools.

        None where there is nothing to guard. `keep` is as in `DirectoryGuard`.
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
        """Commands see the areas below /sandbox, start in /sandbox/workspace, run as the owner.

        `skills` (also at /skills) and `user_uploads` are read-only. With a `toolbox`, which the
        caller holds as long as commands run, its Python comes first.
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
            # Programs of the host listen in neither: only Vel and its commands write there.
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
    """The workspace `base/key`, made if it is missing, mended if its making was interrupted.

    `base`, the operator's choice, is made too and may be a link; below it no link is followed.
    It must be a directory that `uid` can walk to. `uid` owns the tree: for root an unprivileged
    account (`uid_for(n)`; None keeps the owner of an existing tree), for anyone else None or the
    own. The gid is the number of the uid for root, else the own.

    `own_directory` takes the place of the area `workspace`; commands run as its owner, and its
    mode stays as it is. `family` is the key of another workspace of the same account, made too,
    whose `FAMILY_AREAS` this one has.

    Raises `SandboxSetupError`; a tree that belongs to another account is never taken over.
    """
    if own_directory is not None:
        uid = own_directory_account(own_directory)
    if not _KEY.fullmatch(key):
        raise SandboxSetupError(
            f"The workspace key {key!r} was given; use 1 to 128 letters, digits, '-' or '_'."
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
            f"The workspaces {key} and {family} belong to two accounts: they cannot share files."
        )
    above = shared.root if shared is not None else None
    return Workspace(root, owner, _group(owner), own_directory, family=above)


def own_directory_account(directory: Path) -> int:
    """The account that commands in a caller's own directory run as.

    Raises `SandboxSetupError` for what is no directory, belongs to root or the machine, or cannot
    be entered by that account.
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
                f"The workspace {directory} cannot be used: uid {status.st_uid}, who owns it, "
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
        # Whatever the umask is: sandbox accounts pass through, and list nothing.
        base.chmod(0o711 if os.geteuid() == 0 else 0o700)
    except OSError as error:
        raise SandboxSetupError(
            f"The directory for workspaces, {base}, cannot be made: {error.strerror}. "
            "Set another data directory; root keeps it under /var/lib/vel."
        ) from error


def _owner(parent: int, key: str, uid: int | None) -> int:
    own = os.geteuid()
    if own != 0:
        if uid not in (None, own):
            raise SandboxSetupError(
                f"The workspace {key} was to belong to uid {uid}, but this process is uid {own} "
                "and only root can give files away. Leave the uid empty."
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
            f"cannot enter {closed}. Use a data directory that everybody can walk to, such as "
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
            # Commands can write in `first` and put a file or a link in this place. That is
            # theirs to mend and must not keep the workspace from being used.
            pass
