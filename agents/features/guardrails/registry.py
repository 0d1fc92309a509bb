"""The built-in guardrails, and the guardrails and hooks that the operator has registered."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from agents.features.guardrails.guardrail import (
    Decision,
    GuardContext,
    Guardrail,
    allow,
    block,
    replace,
)
from agents.features.guardrails.lifecycle_hooks import Hooks
from agents.features.guardrails.settings import GuardSettings
from agents.features.guardrails.usable import (
    HookCalls,
    calls_of,
    check_guardrail,
    instance_of,
    joined,
)
from agents.telemetry.spans import mask_secrets


class Secrets(Guardrail):
    """Masks likely keys in the model's text, and blocks calls that would send them elsewhere.

    It recognizes keys by their published prefixes. It does not detect keys that are split, spelled
    or encoded, or a password that looks like a word.
    """

    name = "secrets"
    description = "Masks what looks like an API key in answers, and blocks calls that send one away"

    def check_output(self, context: GuardContext, text: str) -> Decision:
        masked = mask_secrets(text)
        return allow() if masked == text else replace(masked)

    def check_tool_call(self, context: GuardContext, tool: str, given: dict[str, Any]) -> Decision:
        if context.leaves_machine and any(mask_secrets(text) != text for text in _texts(given)):
            return block("its input holds what looks like a secret, and would leave this machine")
        return allow()


def _texts(value: Any) -> list[str]:
    """Return all strings of a call's input, including keys, and other values as JSON."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.items() for part in item for text in _texts(part)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [json.dumps(value)]


class MaxLength(Guardrail):
    """Blocks an answer that is too long, so that the model writes a shorter one.

    For another length subclass it with another `name` and `characters`.
    """

    name = "max_length"
    description = "Final answers have 20,000 characters at most; longer ones belong into a file"
    characters = 20_000

    def check_output(self, context: GuardContext, text: str) -> Decision:
        if not context.is_final or len(text) <= self.characters:
            return allow()
        return block(
            f"the answer has {len(text):,} characters and may have {self.characters:,}: shorten "
            "it, and put what is long into a file"
        )


BUILTIN: tuple[Guardrail, ...] = (Secrets(), MaxLength())

Kind = TypeVar("Kind")


@lru_cache(maxsize=1)
def guardrails() -> Mapping[str, Guardrail]:
    """Return all that agents can choose, by name. Raises `ImproperlyConfigured`."""
    found = {guardrail.name: guardrail for guardrail in BUILTIN}
    for path in _paths("GUARDRAILS"):
        guardrail = _loaded(path, Guardrail, "GUARDRAILS")
        where = f'settings.VEL["GUARDRAILS"]: {path}'
        try:
            check_guardrail(guardrail)
        except ValueError as error:
            raise ImproperlyConfigured(f"{where} {error}") from None
        if guardrail.name in found:
            raise ImproperlyConfigured(
                f"{where} has the name {guardrail.name!r} of another guardrail. Register each "
                "guardrail once, with a unique name."
            )
        found[guardrail.name] = guardrail
    return found


@lru_cache(maxsize=1)
def _for_every_agent() -> tuple[str, ...]:
    return tuple(name for name, guardrail in guardrails().items() if guardrail.for_every_agent)


def chosen(names: Iterable[str]) -> tuple[str, ...]:
    """Return the guardrails of an agent with these names, those for every agent first."""
    always = _for_every_agent()
    return (*always, *(name for name in names if name not in always)) if always else tuple(names)


@lru_cache(maxsize=1)
def hook_calls() -> HookCalls | None:
    """Return the methods to call at each point, or None if no hooks are registered.

    Raises `ImproperlyConfigured` for a wrong setting.
    """
    calls: HookCalls | None = None
    for path in _paths("HOOKS"):
        try:
            calls = joined(calls, calls_of([_loaded(path, Hooks, "HOOKS")]))
        except ValueError as error:
            raise ImproperlyConfigured(f'settings.VEL["HOOKS"]: {path} {error}') from None
    return calls


def _paths(key: str) -> tuple[str, ...]:
    paths: tuple[str, ...] = getattr(GuardSettings.now(), key)
    twice = sorted({path for path in paths if paths.count(path) > 1})
    if twice:
        raise ImproperlyConfigured(
            f'settings.VEL["{key}"] names more than once: {", ".join(twice)}.'
        )
    return paths


def _loaded(path: str, kind: type[Kind], key: str) -> Kind:
    """Return the instance that `path` names, or that calling it returns."""
    where = f'settings.VEL["{key}"]: {path}'
    try:
        found = import_string(path)
        made = found if isinstance(found, kind) else found()
    except (Exception, SystemExit) as error:
        raise ImproperlyConfigured(
            f"{where} cannot be used ({type(error).__name__}: {error})."
        ) from error
    try:
        return instance_of(made, kind)
    except TypeError as error:
        raise ImproperlyConfigured(f"{where} {error}") from None


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "VEL":
        for remembered in (guardrails, _for_every_agent, hook_calls):
            remembered.cache_clear()


setting_changed.connect(_forget, dispatch_uid="agents.features.guardrails.registry")
