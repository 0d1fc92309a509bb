"""Modules that are imported when they are first used.

    with lazy_modules:
        from sqlalchemy import exc  # 0.2 s

`exc` is a proxy of the module `sqlalchemy.exc`, which is imported when one of its attributes is
read. Type checkers, linters and import contracts see ordinary imports. The block can contain only
`from package import module`. Python 3.15 has this as `lazy from … import …` (PEP 810).

Use it only for modules that most processes never need, and write the measured cost in a comment; or
for modules that need Django's set-up, in a module that is imported before the set-up. Commands of
`vel` have `agents.doors.cli.late_imports`, which also accepts functions and classes.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from threading import Lock
from types import ModuleType, TracebackType
from typing import Any


class _LazyModule:
    """Stands for a module, which is imported when an attribute is read.

    Attributes cannot be set.
    """

    __slots__ = ("_found", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._found: ModuleType | None = None

    def __getattr__(self, attribute: str) -> Any:
        if self._found is None:
            self._found = import_module(self._name)
        return getattr(self._found, attribute)


class _Package:
    """Stands for the package of a `from package import module` in the block."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, module: str) -> _LazyModule:
        return _LazyModule(f"{self._name}.{module}")


class _LazyModules:
    """The context manager.

    In its blocks, imports of the module that contains the block are lazy.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._open: list[int] = []
        """The ids of the globals of modules that are inside a block, in any thread."""
        self._import: Callable[..., Any] = builtins.__import__

    def __enter__(self) -> None:
        with self._lock:
            if not self._open:
                self._import, builtins.__import__ = builtins.__import__, self._import_lazily
            self._open.append(id(sys._getframe(1).f_globals))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._open.remove(id(sys._getframe(1).f_globals))
            if not self._open:
                builtins.__import__ = self._import

    def _import_lazily(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if id(globals) not in self._open:
            return self._import(name, globals, locals, fromlist, level)
        if not fromlist or level:
            raise ImportError(f"Write `from package import module`, not {name}, in `lazy_modules`.")
        return _Package(name)


lazy_modules = _LazyModules()
