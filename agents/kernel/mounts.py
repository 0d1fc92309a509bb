"""Mounts: directories of the file tools that features add.

The file tools read the present content of a mount. A mount cannot be written: a call that would
write there proposes a change (`agents.kernel.proposals`). Commands do not see mounts. A feature
lists its mounts as `MOUNTS` in its module `mounts`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, ClassVar

from django.core.signals import setting_changed

from agents.kernel.features import collect
from agents.kernel.proposals import Proposed
from sandbox.backends.protocol import FileBackend
from sandbox.paths import is_within


class Mount:
    """One directory, with files of one agent."""

    root: ClassVar[str] = ""
    """The absolute path of the directory."""
    tools: ClassVar[Mapping[str, str | None]] = {}
    """Tools whose paths are relative to `root`, each with the path that it uses without one."""

    def files(self, agent_id: str, call: Callable[..., Any]) -> FileBackend:
        """Return its files. `call` runs a function with its arguments in a transaction."""
        raise NotImplementedError

    def write(self, path: str, content: str, tool: str) -> Proposed:
        """Return the proposal of a tool that writes a whole file. `path` is relative to `root`."""
        raise NotImplementedError

    def replace(
        self, path: str, old_text: str, new_text: str, tool: str, *, replace_all: bool
    ) -> Proposed:
        """Return the proposal of a tool that replaces a part of a file."""
        raise NotImplementedError


@lru_cache(maxsize=1)
def mounts() -> tuple[Mount, ...]:
    """Return the mounts of the installed features."""
    return tuple(mount for _, mount in collect("mounts", "MOUNTS"))


def mount_at(path: str) -> tuple[Mount, str] | None:
    """Return the mount that contains an absolute path, and the path in it."""
    for mount in mounts():
        if is_within(path, mount.root):
            return mount, path[len(mount.root) + 1 :]
    return None


def mount_of_tool(tool: str) -> Mount | None:
    """Return the mount to which the paths of a tool are relative."""
    return next((mount for mount in mounts() if tool in mount.tools), None)


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "INSTALLED_APPS":
        mounts.cache_clear()


setting_changed.connect(_forget, dispatch_uid="agents.kernel.mounts")
