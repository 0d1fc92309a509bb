"""Search for protected files in new commits and in the index.

A command can commit a protected file without writing it to the directory (`git update-index
--cacheinfo`). The file appears at the user's next checkout, and CI runs it after the user's next
push.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from sandbox.errors import SandboxError
from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.own_directory.inventory import Change, Inventory
from sandbox.own_directory.rules import FileRules
from sandbox.policy import Mount, SandboxPolicy

_TARGET = "/sandbox/workspace"
_GIT = "GIT_OPTIONAL_LOCKS=0 git -c core.fsmonitor=false -c log.showSignature=false"
_NAMES = "--no-ext-diff --diff-filter=d --name-only -z"
_COMMITTED = f"{_GIT} log --all --stdin --ignore-missing --format= -m {_NAMES}"
_STAGED = f"{_GIT} diff --cached {_NAMES}"
_SECONDS = 30.0


class HistoryUnknown(Exception):
    """Raised if the new commits could not be listed; the text says why."""


def committed_changes(
    root: Path, uid: int, before: Inventory, after: Inventory
) -> Iterator[Change]:
    """Yield the protected files that new commits or the index add or change.

    git runs as the account `uid`, in a separate read-only sandbox.

    Raises:
        HistoryUnknown: git cannot list the commits.
    """
    for repository, now in sorted(after.history.items()):
        old = before.history.get(repository)
        if old is None or old == now:
            continue  # a new repository has its own items
        tree = repository.rpartition("/")[0]
        known = "".join(f"^{commit}\n" for commit in old[1:])
        listings = [("committed", _COMMITTED, known)]
        if old[0] != now[0]:
            listings.append(("staged", _STAGED, ""))
        seen: set[str] = set()
        for what, command, stdin in listings:
            for name in _names(root, uid, tree, command, stdin):
                path = f"{tree}/{name}" if tree else name
                why = _why_protected(path)
                if why is not None and path not in seen:
                    seen.add(path)
                    yield Change(path, "committed", f"{why}, {what} by the run")


def _why_protected(path: str) -> str | None:
    """Return why the name of a path, or of a directory above it, is protected; None if not."""
    parts = path.split("/")
    above = ("/".join(parts[:end]) for end in range(1, len(parts) + 1))
    return next((why for path in above if (why := FileRules().why_protected(path))), None)


def _names(root: Path, uid: int, tree: str, command: str, stdin: str) -> list[str]:
    policy = SandboxPolicy(
        mounts=(Mount(root, _TARGET),), working_dir=_TARGET, timeout=_SECONDS, uid=uid
    )
    directory = shlex.quote(f"{_TARGET}/{tree}")
    try:
        box = BubblewrapSandbox(policy)
        result = box.start(f"cd {directory} && {command}", stdin=stdin.encode()).wait()
    except SandboxError as error:
        raise HistoryUnknown(str(error)) from error
    if not result.success or result.truncated:
        raise HistoryUnknown(result.stderr.strip()[-200:] or "too many files")
    return [name for name in result.stdout.split("\0") if name.strip("\n")]
