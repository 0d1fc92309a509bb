"""The values of variables in prompts. They are fixed when a thread starts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.contrib.auth.base_user import AbstractBaseUser

from agents.models import Agent, Thread
from agents.prompt_variables import (
    CONTEXT,
    CONTEXT_NAME,
    VALUE_CHARACTERS,
    Value,
    names_in,
    plain,
    problem_of,
    shortened,
)
from agents.services.errors import Conflict, InvalidRequest

MAX_CONTEXT = 32
"""The limit of names in a caller's context."""
MAX_NAMED = 10
_LARGEST = 2**53
"""The limit of a whole number: larger ones are not exact in every JSON parser."""


def check_context(context: Mapping[str, object]) -> dict[str, Value]:
    """Return the caller's values in their stored form.

    Raises `InvalidRequest` for too many values, and for an invalid name or value.
    """
    if len(context) > MAX_CONTEXT:
        raise InvalidRequest(
            f"The context has {len(context)} names and may have {MAX_CONTEXT}: put long material "
            "into the message or a file."
        )
    return {_context_name(name): _context_value(name, value) for name, value in context.items()}


def _context_name(name: str) -> str:
    if not isinstance(name, str) or CONTEXT_NAME.fullmatch(name) is None:
        raise InvalidRequest(
            f"context: {str(name)[:80]!r} is not a valid name. Use up to 64 letters, digits and _, "
            "starting with a letter."
        )
    return name


def _context_value(name: str, value: object) -> Value:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        if len(value) > VALUE_CHARACTERS:
            raise InvalidRequest(
                f"context.{name} has {len(value):,} characters and may have {VALUE_CHARACTERS}: "
                "put long material into the message or a file."
            )
        return plain(value)
    if isinstance(value, int) and abs(value) <= _LARGEST:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise InvalidRequest(f"context.{name} must be a text, a number of usual size, true or false.")


def values_at_start(
    thread: Thread, owner: AbstractBaseUser, agent: Agent, context: Mapping[str, Value]
) -> dict[str, Value]:
    """Return the values of all variables for a thread that starts now.

    `context` are the caller's own values, by name, after `check_context`.
    """
    username = owner.get_username()
    full_name = getattr(owner, "get_full_name", lambda: "")().strip()
    first_name = str(getattr(owner, "first_name", "")).strip()
    return {
        "date": f"{datetime.now(ZoneInfo(thread.time_zone)):%Y-%m-%d}",
        "time_zone": thread.time_zone,
        "user.name": shortened(full_name or username),
        "user.first_name": shortened(first_name or username),
        "thread.id": thread.pk,
        "thread.title": shortened(thread.title),
        "agent.name": shortened(agent.name),
        **{CONTEXT + name: value for name, value in context.items()},
    }


def check_same_context(thread: Thread, context: Mapping[str, Value]) -> None:
    """Raise `Conflict` unless all values in `context` are those from the start of the thread."""
    began_with = thread.prompt_values or {}
    other = [name for name, value in context.items() if began_with.get(CONTEXT + name) != value]
    if other:
        raise Conflict(
            "The context of a thread is fixed, and this thread started with other values "
            f"({_listed(other)}). Remove the context, or start a new thread.",
            code="context_fixed",
        )


def check_needed(spec: Mapping[str, Any], thread: Thread) -> None:
    """Raise `InvalidRequest` if a prompt of `spec` needs a value that the caller did not give."""
    names = {name for _, prompt in _prompts(spec) for name in names_in(prompt)}
    needed = {name for name in names if name.startswith(CONTEXT)}
    missing = sorted(needed - set(thread.prompt_values or {}))
    if missing:
        listed = _listed([name.removeprefix(CONTEXT) for name in missing])
        raise InvalidRequest(
            f"The agent's prompt requires context values that are missing: {listed}. Start a new "
            "thread with them.",
            code="missing_context",
        )


def check_new_prompts(spec: Mapping[str, Any], before: Mapping[str, Any] | None) -> None:
    """Call `check_names` for the prompts of `spec` that the version `before` does not have.

    Prompts from a release without variables remain valid: their braces are plain text.
    """
    known = {prompt for _, prompt in _prompts(before)} if before is not None else set()
    for field, prompt in _prompts(spec):
        if prompt not in known:
            check_names(prompt, field)


def _prompts(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each prompt with its field: `system_prompt` or `subagents.NAME.system_prompt`."""
    yield "system_prompt", spec["system_prompt"]
    for item in spec.get("subagents", ()):
        yield f"subagents.{item['name']}.system_prompt", item["system_prompt"]


def check_names(prompt: str, field: str) -> None:
    """Raise `InvalidRequest` for names that look like variables of Vel but are unknown."""
    if problem := problem_of(prompt):
        raise InvalidRequest(f"{field}: {problem}", code="invalid_agent")


def values_of(thread: Thread) -> dict[str, Value]:
    """Return the values of a thread, which are also those of its subagents' threads.

    The values of a thread from a release without variables are fixed now.
    """
    first = thread.root or thread
    if first.prompt_values is None:
        first.prompt_values = values_at_start(first, first.owner, first.agent, {})
        first.save(update_fields=["prompt_values"])
    values: dict[str, Value] = first.prompt_values
    return values


def _listed(names: Iterable[str]) -> str:
    found = list(names)
    more = f" and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
    return ", ".join(found[:MAX_NAMED]) + more
