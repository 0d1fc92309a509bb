"""Checks of guardrails and hooks, of settings and of programs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from agents.features.guardrails.guardrail import STAGES, Guardrail, makes
from agents.features.guardrails.lifecycle_hooks import ALIASES, POINTS, Hooks

PUBLIC = "agents.features.guardrails.public"
"""Where operators import the classes from."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")

Kind = TypeVar("Kind")

HookCall = tuple[str, Callable[..., Any], float]
"""The class's name, the method, and the seconds that it may take."""

HookCalls = Mapping[str, tuple[HookCall, ...]]
"""The calls at each point."""

OF_PROGRAM = "python:"
"""An agent of a Python program names the program's own guardrails with this prefix: only that
process has them."""


def instance_of(found: Any, kind: type[Kind]) -> Kind:
    """Return `found` if it is an instance, else what calling it returns.

    Raises:
        TypeError: If neither is a `kind`.
    """
    made = found if isinstance(found, kind) else found() if callable(found) else found
    if not isinstance(made, kind):
        raise TypeError(
            f"is not a subclass of {kind.__name__} of {PUBLIC}. Derive it from this class."
        )
    return made


def check_guardrail(guardrail: Guardrail) -> None:
    """Raise `ValueError` for a guardrail without a valid name or without a check."""
    if not isinstance(guardrail.name, str) or not _NAME.fullmatch(guardrail.name):
        raise ValueError(
            f"has the name {guardrail.name!r}. Expected lower case letters, digits, - and _."
        )
    if not any(makes(guardrail, stage) for stage in STAGES):
        raise ValueError(f"checks nothing: override one of {', '.join(STAGES)}.")


def calls_of(all_hooks: Iterable[Hooks]) -> HookCalls:
    """Return the methods to call at each point. Raises `ValueError` for hooks without any."""
    calls: dict[str, list[HookCall]] = {}
    for hooks in all_hooks:
        label = type(hooks).__name__
        found: list[tuple[str, HookCall]] = [
            (point, (label, getattr(hooks, point), hooks.seconds))
            for point in POINTS
            if getattr(type(hooks), point) is not getattr(Hooks, point)
        ]
        found += [
            (point, (f"{label}.{alias}", method, hooks.seconds))
            for alias, point in ALIASES.items()
            if (method := getattr(hooks, alias, None)) is not None
        ]
        if not found:
            raise ValueError(f"has no hook: override one of {', '.join(POINTS)}.")
        for point, call in found:
            calls.setdefault(point, []).append(call)
    return {point: tuple(found) for point, found in calls.items()}


def joined(first: HookCalls | None, second: HookCalls | None) -> HookCalls | None:
    """Return the calls of both, those of `first` first, or None without any calls."""
    if not first or not second:
        return first or second or None
    points = dict.fromkeys((*first, *second))
    return {point: (*first.get(point, ()), *second.get(point, ())) for point in points}
