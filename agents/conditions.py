"""Evaluation of the conditions of rules and grants."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from agents.call_patterns import commands, hosts, paths, recipients
from agents.call_patterns.commands import CommandReading
from agents.call_patterns.fields import any_values, holds_command, whole_values
from agents.call_patterns.hosts import HostReading
from agents.call_patterns.paths import PathReading
from agents.call_patterns.steps import Steps, TooMuchToRead
from agents.events.append import dump
from agents.spec import CallCondition
from sandbox.errors import InvalidRequest as InvalidPattern


class CallReading:
    """The parts of one call that conditions use. Each text is parsed once for all rules."""

    def __init__(self, tool_input: Any) -> None:
        self.input = tool_input
        self.steps = Steps()

    @cached_property
    def written(self) -> bytes:
        return dump(self.input).encode()

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.written).hexdigest()

    @cached_property
    def hosts(self) -> HostReading:
        return HostReading(self.input, self.steps)

    @cached_property
    def commands(self) -> CommandReading:
        return CommandReading(self.steps)

    @cached_property
    def paths(self) -> PathReading:
        return PathReading(self.steps)


def holds(
    condition: CallCondition,
    tool: str,
    tool_input: Any,
    *,
    permits: bool,
    sandbox: bool = True,
    reads: frozenset[str] | None = None,
    reading: CallReading | None = None,
) -> bool:
    """Return whether a call of `tool` with `tool_input` matches all parts of the condition.

    Args:
        condition: The condition of a rule or a grant.
        tool: The name of the tool.
        tool_input: The input that would run.
        permits: Whether the condition permits the call. Then it must match the whole call, and does
            not match if it is not applicable. Otherwise, for a question or a denial, any matching
            part of the call is enough.
        sandbox: Whether paths are those of a workspace.
        reads: The fields that the tool uses (None: all). A call with other fields is not permitted,
            because ignored fields must not make a call look harmless.
        reading: The parsed call, shared by several conditions on it.
    """
    reading = reading or CallReading(tool_input)
    if condition.input_sha256 is not None and reading.sha256 != condition.input_sha256:
        return False
    least = condition.larger_than
    if least is not None and len(reading.written) <= least:
        return False
    parts = (condition.command, condition.path, condition.host, condition.recipient)
    if all(part is None for part in parts):
        return True
    if not permits:
        return _occurs(condition, tool, reading, sandbox)
    try:
        return _permits(condition, tool, reading, sandbox, reads)
    except TooMuchToRead:
        return False


def _permits(
    condition: CallCondition,
    tool: str,
    reading: CallReading,
    sandbox: bool,
    reads: frozenset[str] | None,
) -> bool:
    tool_input = reading.input
    if not isinstance(tool_input, Mapping):
        return False
    if reads is not None and not set(tool_input) <= reads:
        return False
    if condition.command is not None:
        given = whole_values(tool_input, holds_command)
        if not given:
            return False
        if not all(reading.commands.permits(condition.command, text) for text in given):
            return False
    path = condition.path
    if path is not None and not reading.paths.permits(path, tool, tool_input, sandbox=sandbox):
        return False
    if condition.host is not None and not hosts.permits(condition.host, tool_input, reading.steps):
        return False
    recipient = condition.recipient
    return recipient is None or recipients.permits(recipient, tool_input, reading.steps)


def _occurs(condition: CallCondition, tool: str, reading: CallReading, sandbox: bool) -> bool:
    """Return whether each part matches somewhere. A part that is too long to check matches."""
    given, steps = reading.input, reading.steps
    command, path = condition.command, condition.path
    host, recipient = condition.host, condition.recipient
    parts: list[Callable[[], bool]] = []
    if command is not None:
        texts = any_values(given, holds_command)
        parts.append(lambda: any(reading.commands.occurs(command, text) for text in texts))
    if path is not None:
        parts.append(lambda: reading.paths.occurs(path, tool, given, sandbox=sandbox))
    if host is not None:
        parts.append(lambda: reading.hosts.fits(host))
    if recipient is not None:
        parts.append(lambda: recipients.occurs(recipient, given, steps))
    return all(map(_fits, parts))


def _fits(part: Callable[[], bool]) -> bool:
    try:
        return part()
    except TooMuchToRead:
        return True


def sha256_of(tool_input: Any) -> str:
    """Return the digest that identifies this input."""
    return hashlib.sha256(dump(tool_input).encode()).hexdigest()


def problem_of(condition: CallCondition) -> tuple[str, str] | None:
    """Return (the name of the first invalid part, the reason). None if `condition` is valid."""
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
