"""The directories that an agent of another framework uses, in commands and in transfers.

<root>            read-write   the caller's directory, at its own path on the host
/tmp              read-write   private to the backend; unlike a command's own /tmp it persists
/skills           read-only    if the caller passes one
/sandbox/skills   read-only    the same, because skills of Vel use this path

Without a CompositeBackend, deepagents writes long texts to ARTIFACTS, which are also private to the
backend. In the sandbox, /var/tmp is a link to /tmp, so a root below it has two paths there.
"""

from __future__ import annotations

import os
import posixpath
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
LINK_TO_TEMPORARY = "/var/tmp"  # noqa: S108
ARTIFACTS = ("/large_tool_results", "/conversation_history", "/blobs")
SKILLS = ("/skills", f"{paths.SANDBOX_ROOT}/skills")
_PYTHON = Path("/usr/bin/python3")
_PROGRAMS = "/run/programs"


class Places:
    """The directories of an agent: the writable one of the policy `base`, /tmp and /skills.

    `policy` is the extended policy. `guard` protects files in the directory. Raises
    `SandboxSetupError` for a directory `skills` that must not be shown, or that commands could
    write.
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
        # Register the directory before writing into it, so that a failure leaves none behind.
        self.close = weakref.finalize(self, remove_tree, own)
        account = account_for(base)
        private = [
            Mount(_private(own, place.strip("/"), account), place, writable=True)
            for place in (TEMPORARY, *ARTIFACTS)
            if place == TEMPORARY or not _overlaps(str(self.root), place)
        ]
        temporary = private[0].source
        mounts = list(private)
        way = _way_through_temporary(own, temporary, self.root)
        mounts += way
        mounts += [] if shown is None else [Mount(shown, target) for target in SKILLS]
        self.policy = _with_python(replace(base, mounts=(*mounts, *base.mounts)))
        self._root_inside = _without_link(str(self.root))
        self._way = tuple(mount.target for mount in way)
        tree = TreeBackend(self.root, uid=account.uid, gid=account.gid, guard=guard)
        self._trees: dict[str, FileBackend] = {
            self._root_inside: tree,
            **{
                mount.target: TreeBackend(mount.source, uid=account.uid, gid=account.gid)
                for mount in private
            },
        }
        if shown is not None:
            skills_tree = ReadOnly(TreeBackend(shown), "read-only.")
            self._trees |= dict.fromkeys(SKILLS, skills_tree)

    def locate(self, path: str) -> tuple[FileBackend, str]:
        """Return the backend that `path` belongs to, and the path in that backend.

        `path` is absolute and as commands see it. Raises `PathRefused` for a relative path, for
        `..`, and for a path outside the directories.
        """
        if not path.startswith("/"):
            raise PathRefused("not an absolute path. Start it with /.", path)
        if ".." in path.split("/"):
            raise PathRefused("a path with `..` in it. Write the path without it.", path)
        absolute = _without_link(paths.normalise(path))
        place = max(
            (at for at in self._trees if paths.is_within(absolute, at)), key=len, default=""
        )
        on_the_way = place == TEMPORARY and _is_below(absolute, self._way)
        if on_the_way or not place:
            name = posixpath.basename(absolute) if on_the_way else absolute
            raise PathRefused(
                f"outside of {self.description}. "
                f"In the working directory, this is {posixpath.join(self.root, name.lstrip('/'))}.",
                path,
            )
        return self._trees[place], absolute[len(place) :] or "/"

    @property
    def has_skills(self) -> bool:
        return SKILLS[0] in self._trees

    @property
    def description(self) -> str:
        """Return the agent's directories as text, for the model."""
        skills = f" and {SKILLS[0]} (read-only)" if self.has_skills else ""
        return f"{self.root} (the working directory){',' if skills else ' and'} {TEMPORARY}{skills}"

    def resolve(self, path: str | None) -> str:
        """Return the absolute path for the path argument of a file tool; None means the root.

        Relative paths start at the root. deepagents' tools put a `/` before these, so that `.`
        becomes `/.`.
        """
        if path in (None, "", "/."):
            return str(self.root)
        if path.startswith(("/", "~")):
            return path
        joined = posixpath.join(self.root, path)
        return joined if ".." in joined.split("/") else posixpath.normpath(joined)

    def advice(self, path: str) -> str:
        """Return a sentence about the agent's directories if `path` is outside of them, else ""."""
        try:
            self.locate(path)
        except PathRefused as refused:
            return refused.problem
        return ""

    def shown(self, path: str) -> str:
        """Return a path below the root as the caller spells the root, also if a link led to it."""
        if not paths.is_within(path, self._root_inside):
            return path
        return f"{self.root}{path[len(self._root_inside) :]}"


def _without_link(path: str) -> str:
    """Return the path inside the sandbox with /tmp instead of the link /var/tmp."""
    if not paths.is_within(path, LINK_TO_TEMPORARY):
        return path
    return f"{TEMPORARY}{path[len(LINK_TO_TEMPORARY) :]}"


def _overlaps(one: str, other: str) -> bool:
    return paths.is_within(one, other) or paths.is_within(other, one)


def _is_below(path: str, directories: tuple[str, ...]) -> bool:
    return any(paths.is_within(path, directory) for directory in directories)


def _skills(requested: str | Path, root: Path) -> Path:
    skills = readable_path(requested)
    if skills.is_relative_to(root) or root.is_relative_to(skills):
        raise SandboxSetupError(
            f"The skills in {skills} and the working directory {root} overlap, so commands could "
            "write files that must be read-only. Use separate directories."
        )
    if any(_overlaps(str(root), place) for place in SKILLS):
        raise SandboxSetupError(
            f"The working directory {root} overlaps with {' and '.join(SKILLS)}, where commands "
            "see the skills. Use another working directory."
        )
    if not skills.is_dir():
        raise SandboxSetupError(f"The skills path {skills} is not a directory. Use a directory.")
    return skills


def _private(own: Path, name: str, account: Account) -> Path:
    """Create a private directory of this backend, owned by `account`."""
    directory = own / name
    directory.mkdir(mode=0o700)
    if os.geteuid() == 0:
        own.chmod(0o711)  # the account can pass through but not list it
        os.chown(directory, account.uid, account.gid)
    return directory


def _way_through_temporary(own: Path, temporary: Path, root: Path) -> list[Mount]:
    """Return mounts on the way to a `root` in the host's /tmp, which the sandbox's /tmp covers.

    bubblewrap creates the directories on the way to a mount and follows links there, outside the
    sandbox. So the agent must not be able to replace them: the first directory below /tmp is a
    read-only mount in every command of this backend, and a mount cannot be renamed or removed.
    """
    shared = next((at for at in (TEMPORARY, LINK_TO_TEMPORARY) if root.is_relative_to(at)), None)
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
    """Add the command `python` on hosts that have only `python3`: models and tests use both."""
    if Path("/usr/bin/python").exists() or not _PYTHON.exists():
        return policy
    path = f"{ENVIRONMENT['PATH']}:{_PROGRAMS}"
    program = Mount(_PYTHON.resolve(), f"{_PROGRAMS}/python")
    return replace(
        policy,
        mounts=(program, *policy.mounts),
        environment=(*policy.environment, ("PATH", path)),
    )
