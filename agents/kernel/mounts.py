"""Mounts: directories in the file tools whose files come from features.

The file tools read the present content of a mount. They cannot write to it: a call that would write
proposes a change (`agents.kernel.proposals`). Commands do not see mounts. A feature lists its
mounts as `MOUNTS` in its module `mounts`.
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
    """A directory with files of one agent."""

    root: ClassVar[str] = ""
    """The absolute path of the directory."""
    tools: ClassVar[Mapping[str, str | None]] = {}
    """The tools whose paths are relative to `root`, each with the path that it uses by default.

    None: the tool has no default.
    """

    def files(self, agent_id: str, call: Callable[..., Any]) -> FileBackend:
        """Return the files of an agent. `call` calls a function with arguments in a transaction."""
        raise NotImplementedError

    def write(self, path: str, content: str, tool: str) -> Proposed:
        """Return the change that a tool proposes by writing a whole file.

        `path` is relative to `root`.
        """
        raise NotImplementedError

    def replace(
        self, path: str, old_text: str, new_text: str, tool: str, *, replace_all: bool
    ) -> Proposed:
        """Return the change that a tool proposes by replacing a part of a file.

        `path` is relative to `root`.
        """
        raise NotImplementedError


@lru_cache(maxsize=1)
def mounts() -> tuple[Mount, ...]:
    """Return the mounts of the installed features."""
    return tuple(mount for _, mount in collect("mounts", "MOUNTS"))


def mount_at(path: str) -> tuple[Mount, str] | None:
    """Return (the mount that contains the absolute `path`, the path in it); None for no mount."""
    for mount in mounts():
        if is_within(path, mount.root):
            return mount, path[len(mount.root) + 1 :]
    return None


def mount_of_tool(tool: str) -> Mount | None:
    """Return the mount to which the paths of `tool` are relative, None for other tools."""
    return next((mount for mount in mounts() if tool in mount.tools), None)


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "INSTALLED_APPS":
        mounts.cache_clear()


setting_changed.connect(_forget, dispatch_uid="agents.kernel.mounts")
