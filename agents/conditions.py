"""Whether a call fits the condition of a rule or a grant."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from agents.call_patterns import commands, hosts, paths, recipients
from agents.call_patterns.fields import any_values, holds_command, whole_values
from agents.events.append import dump
from agents.spec import CallCondition
from sandbox.errors import InvalidRequest as InvalidPattern


def holds(
    condition: CallCondition,
    tool: str,
    tool_input: Any,
    *,
    permits: bool,
    sandbox: bool = True,
    reads: frozenset[str] | None = None,
) -> bool:
    """Whether a call of `tool` with `tool_input` fits: all that the condition gives holds.

    `permits`: the condition leads to a yes, so that it must fit all of the call, and never fits
    where it does not apply; else, for a question or a denial, any part is enough. `sandbox`: paths
    are those of a workspace. `reads`: the fields that the tool looks at (None: all); a field that
    it ignores must not make a call look harmless.
    """
    if condition.input_sha256 is not None and sha256_of(tool_input) != condition.input_sha256:
        return False
    least = condition.larger_than
    if least is not None and len(dump(tool_input).encode()) <= least:
        return False
    parts = (condition.command, condition.path, condition.host, condition.recipient)
    if all(part is None for part in parts):
        return True
    if permits:
        return _permits(condition, tool, tool_input, sandbox, reads)
    return _occurs(condition, tool, tool_input, sandbox)


def _permits(
    condition: CallCondition,
    tool: str,
    tool_input: Any,
    sandbox: bool,
    reads: frozenset[str] | None,
) -> bool:
    if not isinstance(tool_input, Mapping):
        return False
    if reads is not None and not set(tool_input) <= reads:
        return False
    if condition.command is not None:
        given = whole_values(tool_input, holds_command)
        if not given or not all(commands.permits(condition.command, text) for text in given):
            return False
    path = condition.path
    if path is not None and not paths.permits(path, tool, tool_input, sandbox=sandbox):
        return False
    if condition.host is not None and not hosts.permits(condition.host, tool_input):
        return False
    return condition.recipient is None or recipients.permits(condition.recipient, tool_input)


def _occurs(condition: CallCondition, tool: str, tool_input: Any, sandbox: bool) -> bool:
    if condition.command is not None:
        given = any_values(tool_input, holds_command)
        if not any(commands.occurs(condition.command, text) for text in given):
            return False
    path = condition.path
    if path is not None and not paths.occurs(path, tool, tool_input, sandbox=sandbox):
        return False
    if condition.host is not None and not hosts.occurs(condition.host, tool_input):
        return False
    return condition.recipient is None or recipients.occurs(condition.recipient, tool_input)


def sha256_of(tool_input: Any) -> str:
    """The name of exactly this input."""
    return hashlib.sha256(dump(tool_input).encode()).hexdigest()


def problem_of(condition: CallCondition) -> tuple[str, str] | None:
    """The part of `condition` that is not understood and why; None when it is fine."""
    for part, value, check in (
        ("command", condition.command, commands.check_expression),
        ("path", condition.path, paths.check_pattern),
        ("host", condition.host, hosts.check_pattern),
        ("recipient", condition.recipient, recipients.check_pattern),
    ):
        try:
            if value is not None:
                check(value)
        except InvalidPattern as problem:
            return part, str(problem)
    return None
