"""Imports of a command's file that wait until Django is set up.

The file of a command holds its options and its code. Help and usage errors need only the options,
and should not wait for the 0.3 s of processor time that Django's set-up takes. The code needs
models, which Python can import only after the set-up. So the file says:

    with late_imports:
        from agents.models import Run

Before the set-up, `Run` is a placeholder. `finish_imports` replaces it; `boot.database` calls that.
After the set-up the block is nothing but imports. Type checkers and linters always see imports.

A placeholder raises an error when it is used: such a name cannot be a decorator, a base class or
a default at the top of the file. The block holds `from … import …` only. Files with such a block
import each other inside the block. Python 3.15 has the same as `lazy from … import …` (PEP 810).
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, NoReturn

_unfinished: dict[str, dict[str, Any]] = {}
"""The globals of modules that have placeholders, by the name of the module."""


def finish_imports(module: str) -> None:
    """Do the late imports of `module`, and of the modules that these are from."""
    names = _unfinished.pop(module, {})
    for name, value in list(names.items()):
        if isinstance(value, _Placeholder):
            origin, attribute = object.__getattribute__(value, "_origin")
            found = _import(origin, fromlist=[attribute])
            finish_imports(origin)
            names[name] = getattr(found, attribute)


class _LateImports:
    def __enter__(self) -> None:
        if not _models_are_ready():
            builtins.__import__ = _import_later

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        builtins.__import__ = _import


late_imports = _LateImports()


class _Placeholder:
    """A name that is imported later."""

    def __init__(self, origin: str, attribute: str) -> None:
        self._origin = (origin, attribute)

    def __call__(self, *arguments: object, **more: object) -> NoReturn:
        _refuse(self)

    def __getattr__(self, name: str) -> NoReturn:
        _refuse(self)


def _refuse(placeholder: _Placeholder) -> NoReturn:
    origin, attribute = object.__getattribute__(placeholder, "_origin")
    raise RuntimeError(
        f"{attribute} of {origin} is a late import, and Django is not set up: use it only inside "
        "a command's function, after `with_database` or in a `with database(…)`."
    )


class _LaterModule:
    """What `from … import …` takes the names from."""

    def __init__(self, origin: str) -> None:
        self._origin = origin

    def __getattr__(self, attribute: str) -> _Placeholder:
        return _Placeholder(self._origin, attribute)


_import = builtins.__import__


def _import_later(
    name: str,
    globals: Mapping[str, object] | None = None,
    locals: Mapping[str, object] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> Any:
    if not fromlist or level or not isinstance(globals, dict):
        raise ImportError(f"Write `from {name} import …` with a full path in `late_imports`.")
    _unfinished[globals["__name__"]] = globals
    return _LaterModule(name)


def _models_are_ready() -> bool:
    registry = sys.modules.get("django.apps.registry")
    return registry is not None and registry.apps.models_ready
