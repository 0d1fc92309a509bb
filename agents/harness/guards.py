"""Guardrails, hooks and retries as a program gives them, checked when the agent is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from agents.guards.guardrail import Guardrail
from agents.guards.lifecycle_hooks import Hooks
from agents.guards.usable import OF_PROGRAM, calls_of, check_guardrail, instance_of
from agents.harness.errors import SetupError
from agents.kernel.lazy_modules import lazy_modules
from agents.spec import RetryRule

with lazy_modules:
    from agents.guards import registry  # it needs settings


def guardrails_from(given: Any) -> list[Guardrail | str]:
    """Return instances, and names of registered guardrails. Raises `SetupError`."""
    found: list[Guardrail | str] = []
    for item in _listed("guardrails", given, "Guardrail classes or instances, and names"):
        if isinstance(item, str):
            found.append(item)
            continue
        guardrail = _made("guardrails", item, Guardrail)
        try:
            check_guardrail(guardrail)
        except ValueError as error:
            raise SetupError(f"guardrails: {_label(item)} {error}") from None
        found.append(guardrail)
    names = [item if isinstance(item, str) else item.name for item in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SetupError(f"guardrails: {twice!r} is given twice.")
    return found


def hooks_from(given: Any) -> list[Hooks]:
    """Return instances. Raises `SetupError`."""
    found = []
    for item in _listed("hooks", given, "Hooks classes or instances"):
        hooks = _made("hooks", item, Hooks)
        try:
            calls_of([hooks])
        except ValueError as error:
            raise SetupError(f"hooks: {_label(item)} {error}") from None
        found.append(hooks)
    return found


def retries_from(given: Any) -> list[Mapping[str, Any]]:
    """Return the rules as an agent stores them. Raises `SetupError`."""
    found: list[Mapping[str, Any]] = []
    for at, item in enumerate(_listed("tool_retries", given, "rules")):
        try:
            found.append(RetryRule.model_validate(item).model_dump())
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            reason = f"{place}: {first['msg']}" if place else first["msg"]
            raise SetupError(
                f"tool_retries: number {at + 1}: {reason}. Give "
                '{"tool": NAME, "attempts": 2 to 10, "backoff": SECONDS}.'
            ) from None
    return found


def check_guardrail_names(given: Iterable[Guardrail | str]) -> None:
    """Raise `SetupError` for a name that nobody has, and for a guardrail whose name is taken."""
    for item in given:
        if isinstance(item, str) and item not in registry.guardrails():
            known = ", ".join(registry.guardrails())
            raise SetupError(f"guardrails: {item!r} is not registered; there are {known}.")
        if isinstance(item, Guardrail) and item.name in registry.guardrails():
            raise SetupError(
                f"guardrails: {_label(item)} has the name {item.name!r}, which a registered "
                "guardrail has: give it a name of its own."
            )


def stored_names(given: Iterable[Guardrail | str]) -> list[str]:
    """The names that the agent's row has for them."""
    return [item if isinstance(item, str) else OF_PROGRAM + item.name for item in given]


def own_guardrails(given: Iterable[Guardrail | str]) -> dict[str, Guardrail]:
    """Those of the program, by the names that the agent's row has for them."""
    return {OF_PROGRAM + item.name: item for item in given if isinstance(item, Guardrail)}


def _listed(option: str, given: Any, what: str) -> list[Any]:
    if not isinstance(given, list | tuple):
        raise SetupError(f"{option}: give a list of {what}, not {_label(given)}.")
    return list(given)


def _made(option: str, item: Any, kind: type[Any]) -> Any:
    try:
        return instance_of(item, kind)
    except TypeError as error:
        reason = str(error)
        if isinstance(item, type) and issubclass(item, kind):
            reason = f"cannot be made without arguments ({error}): give an instance."
        raise SetupError(f"{option}: {_label(item)} {reason}") from None


def _label(item: Any) -> str:
    return item.__name__ if isinstance(item, type) else f"{type(item).__name__} {item!r:.80}"
