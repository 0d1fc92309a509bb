"""The directories that an agent of another framework uses, in commands and in transfers.

<root>    read-write   the caller's directory, at its own path on the host
/tmp      read-write   private to the backend; unlike a command's own /tmp it persists
/skills   read-only    if the caller passes one
"""

from __future__ import annotations

import os
import tempfile
import weakref
from dataclasses import replace
from pathlib import Path, PurePosixPath

from sandbox import paths
from sandbox.account import Account, account_for
from sandbox.backends.protocol import FileBackend, WriteGuard
from sandbox.backends.tree import TreeBackend
from sandbox.backends.workspace import ReadOnly
from sandbox.directories.removal import remove_tree
from sandbox.errors import PathRefused, SandboxSetupError
from sandbox.host_paths import readable_path
from sandbox.linux.namespace import ENVIRONMENT
from sandbox.policy import Mount, SandboxPolicy

TEMPORARY = "/tmp"  # noqa: S108 - the sandbox's, never the host's
SKILLS = "/skills"
_PYTHON = Path("/usr/bin/python3")
_PROGRAMS = "/run/programs"


class Places:
    """Adds /tmp and /skills to `base`, a policy with one writable directory.

    `policy` is the extended policy. `guard` protects files in the directory. Raises
    `SandboxSetupError` for a `skills` that must not be shown, or that commands could write.
    """

    def __init__(
        self,
        base: SandboxPolicy,
        skills: str | Path | None = None,
        guard: WriteGuard | None = None,
    ) -> None:
        self.root = Path(base.working_dir)
        shown = None if skills is None else _skills(skills, self.root)
        own = Path(tempfile.mkdtemp(prefix="vel-places-"))
        # Register this before writing into it, so that a failure leaves no directory behind.
        self.close = weakref.finalize(self, remove_tree, own)
        account = account_for(base)
        temporary = _temporary(own, account)
        mounts = [Mount(temporary, TEMPORARY, writable=True)]
        mounts += _way_through_temporary(own, temporary, self.root)
        mounts += [] if shown is None else [Mount(shown, SKILLS)]
        self.policy = _with_python(replace(base, mounts=(*mounts, *base.mounts)))
        self._trees: dict[str, FileBackend] = {
            str(self.root): TreeBackend(self.root, uid=account.uid, gid=account.gid, guard=guard),
            TEMPORARY: TreeBackend(temporary, uid=account.uid, gid=account.gid),
        }
        if shown is not None:
            self._trees[SKILLS] = ReadOnly(TreeBackend(shown), "read-only.")

    def locate(self, path: str) -> tuple[FileBackend, str]:
        """Return the backend that `path` belongs to, and the path in that backend.

        `path` is absolute and as commands see it. Raises `PathRefused` for a relative path, for
        `..`, and for a path outside the directories.
        """
        if not path.startswith("/"):
            raise PathRefused("not an absolute path. Start it with /.", path)
        if ".." in path.split("/"):
            raise PathRefused("a path with `..` in it. Write the path without it.", path)
        absolute = paths.normalise(path)
        within = [place for place in self._trees if paths.is_within(absolute, place)]
        if not within:
            raise PathRefused(f"outside of {', '.join(self._trees)}. Use a path there.", path)
        place = max(within, key=len)
        return self._trees[place], absolute[len(place) :] or "/"


def _skills(requested: str | Path, root: Path) -> Path:
    skills = readable_path(requested)
    if skills.is_relative_to(root) or root.is_relative_to(skills):
        raise SandboxSetupError(
            f"The skills in {skills} and the working directory {root} overlap, so commands could "
            "write files that must be read-only. Use separate directories."
        )
    if not skills.is_dir():
        raise SandboxSetupError(f"The skills path {skills} is not a directory. Use a directory.")
    return skills


def _temporary(own: Path, account: Account) -> Path:
    """Create the directory that commands see as /tmp, with `account` as its owner."""
    temporary = own / "tmp"
    temporary.mkdir(mode=0o700)
    if os.geteuid() == 0:
        own.chmod(0o711)  # the account can pass through but not list it
        os.chown(temporary, account.uid, account.gid)
    return temporary


def _way_through_temporary(own: Path, temporary: Path, root: Path) -> list[Mount]:
    """Mount the path to a `root` in the host's /tmp, which the sandbox's own /tmp covers.

    bubblewrap creates the directories on the way to a mount and follows links there, outside the
    sandbox. So the agent must not be able to replace them: the first directory below /tmp is a
    read-only mount in every command of this backend, and a mount cannot be renamed or removed.
    """
    shared = next((at for at in (TEMPORARY, "/var/tmp") if root.is_relative_to(at)), None)  # noqa: S108
    if shared is None:
        return []
    first, *rest = root.relative_to(shared).parts
    (temporary / first).mkdir()
    if not rest:
        return []
    way = own / "way"
    way.joinpath(*rest).mkdir(parents=True)
    if os.geteuid() == 0:
        for directory in (way, *(way / part for part in _prefixes(rest))):
            directory.chmod(0o755)
    return [Mount(way, f"{TEMPORARY}/{first}")]


def _prefixes(parts: list[str]) -> list[PurePosixPath]:
    return [PurePosixPath(*parts[: count + 1]) for count in range(len(parts))]


def _with_python(policy: SandboxPolicy) -> SandboxPolicy:
    """Add `python` on hosts that have only `python3`: models and test suites use both."""
    if Path("/usr/bin/python").exists() or not _PYTHON.exists():
        return policy
    path = f"{ENVIRONMENT['PATH']}:{_PROGRAMS}"
    program = Mount(_PYTHON.resolve(), f"{_PROGRAMS}/python")
    return replace(
        policy,
        mounts=(program, *policy.mounts),
        environment=(*policy.environment, ("PATH", path)),
    )
