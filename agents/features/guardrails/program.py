"""Guardrails, hooks and retries of a Python program's agent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from agents.features.guardrails.guardrail import Guardrail
from agents.features.guardrails.lifecycle_hooks import Hooks
from agents.features.guardrails.options import RetryOptions, RetryRule
from agents.features.guardrails.registry import guardrails
from agents.features.guardrails.usable import (
    OF_PROGRAM,
    HookCalls,
    calls_of,
    check_guardrail,
    instance_of,
)
from agents.kernel.programs import OptionArguments, ProgramOptions, ProgramPart


class ProgramGuards(ProgramPart):
    """The guardrails of a program, by their names for its agent, and its hooks."""

    def __init__(self, guardrails: Mapping[str, Guardrail], hooks: HookCalls) -> None:
        self.guardrails = guardrails
        self.hooks = hooks
        self.described = sorted(guardrails)
        self.wants_ends = bool(hooks)
        self.pinned = {point: [call[0] for call in calls] for point, calls in hooks.items()}

    def covers(self, spec: Mapping[str, Any]) -> bool:
        named = {name for name in spec.get("guardrails", ()) if name.startswith(OF_PROGRAM)}
        return named <= self.guardrails.keys()


class GuardArguments(ProgramOptions):
    names = ("guardrails", "hooks", "tool_retries")

    def checked(self, name: str, value: Any) -> Any:
        check = {"guardrails": _guardrails, "hooks": _hooks, "tool_retries": _retries}[name]
        return check(value)

    def part(self, values: Mapping[str, Any]) -> ProgramGuards:
        own = [item for item in values["guardrails"] if isinstance(item, Guardrail)]
        return ProgramGuards(
            {OF_PROGRAM + item.name: item for item in own}, calls_of(values["hooks"])
        )

    def stored(self, values: Mapping[str, Any]) -> dict[str, Any]:
        _check_names(values["guardrails"])
        names = [
            item if isinstance(item, str) else OF_PROGRAM + item.name
            for item in values["guardrails"]
        ]
        stored = {"guardrails": names, "tool_retries": values["tool_retries"]}
        return {name: value for name, value in stored.items() if value}


PROGRAM_OPTIONS = (GuardArguments(), OptionArguments(RetryOptions))


def _guardrails(given: Any) -> list[Guardrail | str]:
    """Return instances, and names of registered guardrails. Raises `ValueError`."""
    found: list[Guardrail | str] = []
    for item in _listed("guardrails", given, "Guardrail classes or instances, and names"):
        if isinstance(item, str):
            found.append(item)
            continue
        guardrail = _instance("guardrails", item, Guardrail)
        try:
            check_guardrail(guardrail)
        except ValueError as error:
            raise ValueError(f"guardrails: {_label(item)} {error}") from None
        found.append(guardrail)
    names = [item if isinstance(item, str) else item.name for item in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"guardrails: {twice!r} is given twice.")
    return found


def _hooks(given: Any) -> list[Hooks]:
    """Return instances. Raises `ValueError`."""
    found = []
    for item in _listed("hooks", given, "Hooks classes or instances"):
        hooks = _instance("hooks", item, Hooks)
        try:
            calls_of([hooks])
        except ValueError as error:
            raise ValueError(f"hooks: {_label(item)} {error}") from None
        found.append(hooks)
    return found


def _retries(given: Any) -> list[Mapping[str, Any]]:
    """Return the rules as an agent stores them. Raises `ValueError`."""
    found: list[Mapping[str, Any]] = []
    for at, item in enumerate(_listed("tool_retries", given, "rules")):
        try:
            found.append(RetryRule.model_validate(item).model_dump())
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            reason = f"{place}: {first['msg']}" if place else first["msg"]
            raise ValueError(
                f"tool_retries: number {at + 1}: {reason}. Give "
                '{"tool": NAME, "attempts": 2 to 10, "backoff": SECONDS}.'
            ) from None
    return found


def _check_names(given: Iterable[Guardrail | str]) -> None:
    """Raise `ValueError` for an unknown name, and for a guardrail whose name is already in use."""
    for item in given:
        if isinstance(item, str) and item not in guardrails():
            known = ", ".join(guardrails())
            raise ValueError(f"guardrails: {item!r} is not registered; there are {known}.")
        if isinstance(item, Guardrail) and item.name in guardrails():
            raise ValueError(
                f"guardrails: {_label(item)} has the name {item.name!r} of a registered guardrail. "
                "Choose another name."
            )


def _listed(option: str, given: Any, what: str) -> list[Any]:
    if not isinstance(given, list | tuple):
        raise ValueError(f"{option}: give a list of {what}, not {_label(given)}.")
    return list(given)


def _instance(option: str, item: Any, kind: type[Any]) -> Any:
    try:
        return instance_of(item, kind)
    except TypeError as error:
        reason = str(error)
        if isinstance(item, type) and issubclass(item, kind):
            reason = f"cannot be made without arguments ({error}): give an instance."
        raise ValueError(f"{option}: {_label(item)} {reason}") from None


def _label(item: Any) -> str:
    return item.__name__ if isinstance(item, type) else f"{type(item).__name__} {item!r:.80}"
