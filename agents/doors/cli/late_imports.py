"""Imports of a command's file that wait until Django is set up.

The file of a command contains its options and its code. The code needs models, which can be
imported only after Django's set-up. Help and usage errors need only the options, and the set-up
would cost them 0.3 s of processor time. Write:

    with late_imports:
        from agents.models import Run

Before the set-up, `Run` becomes a placeholder, and `boot.database` later calls `finish_imports`,
which replaces it. After the set-up, the block imports as usual. Type checkers and linters see
ordinary imports.

A placeholder raises an error when it is used too early, for example as a decorator, a base class or
a default. The block can contain only `from … import …`. To import from a file with such a block,
use a block as well. Python 3.15 has this as `lazy from … import …` (PEP 810).
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
            try:
                names[name] = getattr(found, attribute)
            except AttributeError:
                raise ImportError(f"cannot import name {attribute!r} from {origin!r}") from None


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
    """The module of a `from … import …` in the block."""

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
