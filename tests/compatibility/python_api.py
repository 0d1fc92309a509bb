"""The public names of the package `vel`, as data, and the breaking differences between two."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from tests.compatibility.schemas import Break

Api = dict[str, Any]
"""Each name, with `parameters` and `members` if it has them. A member is described as a name."""

_PACKAGES = ("vel", "agents", "memory", "sandbox", "skills_app")
_POSITIONAL = ("POSITIONAL_ONLY", "POSITIONAL_OR_KEYWORD")
_ANY_NAME = "VAR_KEYWORD"


def describe(names: dict[str, Any]) -> Api:
    """Return the parameters and the members of public objects by their names."""
    return {name: _described(value) for name, value in sorted(names.items())}


def _described(value: Any) -> Api:
    if isinstance(value, type) and issubclass(value, Enum):
        return {"members": {one.name: {} for one in value}}
    found: Api = _parameters(value) if callable(value) else {}
    if isinstance(value, type):
        found["members"] = {
            name: {} if not inspect.isfunction(member) else _parameters(member)
            for name, member in sorted(_members(value))
        }
    return found


def _members(value: type) -> Iterator[tuple[str, Any]]:
    """Yield the public attributes that Vel's own classes define, without duplicates."""
    seen: dict[str, Any] = {}
    for base in reversed(value.__mro__):
        if base.__module__.partition(".")[0] in _PACKAGES:
            annotated = dict.fromkeys(inspect.get_annotations(base))
            seen |= {**annotated, **vars(base)}
    for name, member in seen.items():
        if not name.startswith("_"):
            unbound = isinstance(member, classmethod | staticmethod)
            yield name, member.__func__ if unbound else member


def _parameters(value: Callable[..., Any]) -> Api:
    try:
        signature = inspect.signature(value)
    except ValueError:  # a class of C, such as an exception
        return {}
    return {
        "parameters": [
            [name, one.kind.name, one.default is not one.empty]
            for name, one in signature.parameters.items()
        ]
    }


def compare(old: Api, new: Api, prefix: str = "") -> list[Break]:
    """Return what breaks programs that import the names."""
    return sorted(set(_breaks(old, new, prefix)))


def _breaks(old: Api, new: Api, prefix: str) -> Iterator[Break]:
    for name, before in old.items():
        subject = f"{prefix}{name}"
        if name not in new:
            yield Break(subject, "removed")
            continue
        after = new[name]
        if "parameters" in before:
            yield from _signature(before["parameters"], after.get("parameters"), subject)
        yield from _breaks(before.get("members", {}), after.get("members", {}), f"{subject}.")


def _signature(old: list[Any], new: list[Any] | None, subject: str) -> Iterator[Break]:
    if new is None:
        yield Break(subject, "can no longer be called")
        return
    after = {name: (kind, optional) for name, kind, optional in new}
    takes_any = any(kind == _ANY_NAME for kind, _ in after.values())
    for name, kind, optional in old:
        where = f"{subject} {name}"
        if name not in after:
            if not (takes_any and kind == "KEYWORD_ONLY"):
                yield Break(where, "removed")
            continue
        if optional and not after[name][1]:
            yield Break(where, "now required")
        if kind != after[name][0] and after[name][0] != "POSITIONAL_OR_KEYWORD":
            yield Break(where, f"{kind} became {after[name][0]}")
    known = {name for name, _, _ in old}
    for name, (kind, optional) in after.items():
        if name not in known and not optional and not kind.startswith("VAR_"):
            yield Break(f"{subject} {name}", "new required parameter")
    before = [name for name, kind, _ in old if kind in _POSITIONAL]
    now = [name for name, kind, _ in new if kind in _POSITIONAL and name in known]
    first = [name for name, kind, _ in new if kind in _POSITIONAL][: len(before)]
    if sorted(before) == sorted(now) and first != before:
        yield Break(subject, "the order of its parameters has changed")
