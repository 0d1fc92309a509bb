"""The files that a program gives to its agent with `FilesystemMiddleware(backend)`.

Backends of Vel are used directly. Code of the program runs in its own threads, with a time limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from agents.kernel.beside import Beside, TooManyHang
from agents.kernel.lazy_modules import lazy_modules
from sandbox.backends import (
    AdaptedBackend,
    CompositeBackend,
    MemoryFileStore,
    ReadOnly,
    StateFilesystemBackend,
    TreeBackend,
)
from sandbox.backends.composite import file_backend
from sandbox.backends.protocol import FileBackend
from sandbox.cancellation import Cancellation

with lazy_modules:
    # Only for runs of a program.
    from sandbox.backends import sandboxed

BESIDE = Beside("files")
SECONDS = 60.0
"""The limit of a call outside of a tool."""
OWN_ROWS = ("/sandbox", "/user_uploads")
"""Directories in which Vel keeps files of an agent without a sandbox."""
RESERVED = (*OWN_ROWS, "/skills")
"""Directories of Vel in the files of every agent."""
_limits: ContextVar[tuple[float, Cancellation | None]] = ContextVar(
    "limits of a call", default=(SECONDS, None)
)


@contextmanager
def call_limits(seconds: float, cancel: Cancellation) -> Iterator[None]:
    """Limit each call of a program's backend in the block to `seconds`, in this thread.

    Cancelling `cancel` ends the wait for a call.
    """
    token = _limits.set((seconds, cancel))
    try:
        yield
    finally:
        _limits.reset(token)


def _beside(function: Callable[[], Any]) -> Any:
    seconds, cancel = _limits.get()
    try:
        return BESIDE.wait(function, seconds=seconds, cancel=cancel)
    except TooManyHang:
        raise TimeoutError("too many earlier calls hang") from None


@dataclass(frozen=True, eq=False)
class ProgramFiles:
    """The backend that a program gives to its agent, and other backends at their paths.

    The backend is None if the agent uses its own sandbox.
    """

    default: FileBackend | None
    routes: Mapping[str, FileBackend] = field(default_factory=dict)

    @classmethod
    def of(cls, backend: Any) -> ProgramFiles:
        """Return the files for a backend of Vel or of the program.

        A SandboxFilesystemBackend at the top is omitted, because the agent has its own sandbox
        there.
        """
        default, routes = _flat(file_backend(backend))
        return cls(None if type(default) is sandboxed.SandboxFilesystemBackend else default, routes)

    @property
    def pinned(self) -> list[Any]:
        """Return JSON that stays the same as long as the program gives the same kinds of files."""
        return [
            None if self.default is None else _name(self.default),
            sorted([path, _name(backend)] for path, backend in self.routes.items()),
        ]

    @property
    def executor(self) -> AdaptedBackend | None:
        """Return the program's backend that runs commands, or None."""
        found = self.default
        is_one = isinstance(found, AdaptedBackend) and found.supports_execute
        return _checked(found) if is_one and found is not None else None

    def opened(self, *, read_only: bool) -> tuple[FileBackend | None, dict[str, FileBackend]]:
        """Return the backends for a run: the one at the top, or None, and others by path."""
        routes = {path: _usable(one, read_only) for path, one in self.routes.items()}
        return None if self.default is None else _usable(self.default, read_only), routes


def _flat(backend: FileBackend) -> tuple[FileBackend, dict[str, FileBackend]]:
    """Return the default backend of a composite, and all routes, including nested ones."""
    if type(backend) is not CompositeBackend:
        return backend, {}
    default, routes = _flat(backend.default)
    for path, mounted in backend.routes.items():
        # A route hides the files of the default backend below its path.
        routes = {one: kept for one, kept in routes.items() if not one.startswith(f"{path}/")}
        own, below = _flat(mounted)
        routes |= {path: own, **{path + inner: one for inner, one in below.items()}}
    return default, routes


def _usable(backend: FileBackend, read_only: bool) -> FileBackend:
    if not _is_vels(backend):
        return _checked(backend).with_call(_beside, read_only=read_only)
    return ReadOnly(backend) if read_only else backend


def _checked(backend: FileBackend) -> AdaptedBackend:
    """Return a program's backend whose calls run outside the engine."""
    found = backend if isinstance(backend, AdaptedBackend) else AdaptedBackend(backend)
    return found.with_call(_beside)


def _is_vels(backend: FileBackend) -> bool:
    """Return whether a backend consists only of Vel's code."""
    if type(backend) is StateFilesystemBackend:
        return type(backend.store) is MemoryFileStore
    if type(backend) is ReadOnly:
        return _is_vels(backend.inner)
    return type(backend) in (TreeBackend, sandboxed.SandboxFilesystemBackend)


def _name(backend: FileBackend) -> str:
    kind = type(backend.inner if isinstance(backend, AdaptedBackend) else backend)
    return f"{kind.__module__}.{kind.__qualname__}"
