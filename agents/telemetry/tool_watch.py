"""Telemetry of tool calls and of commands in sandboxes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from agents.telemetry import spans
from agents.telemetry.ids import span_id_of
from agents.telemetry.spans import AttributeValue
from agents.telemetry.watch import ClaimWatch, current_watch, quietly
from sandbox.result import OVER_LIMIT_EXIT_CODE, ExecutionResult

_tool_span: ContextVar[int | None] = ContextVar("vel_tool_span", default=None)


class ToolCallWatch:
    """What is recorded about one attempt of a tool call. The caller sets the attributes.

    `waits`: the tool waits for other runs, so the call can end in a later claim of its run.
    `error` is a code, or empty. `result` is the content of the result; None: no result yet.
    """

    error: str = ""
    waits: bool = False
    result: object = None


@contextmanager
def watched_tool_call(
    tool: str, call_id: str, place: tuple[int, int], attempt: int, given: str
) -> Iterator[ToolCallWatch]:
    """Record one attempt. `place` is its (turn, position), `given` its input as JSON."""
    call = ToolCallWatch()
    watch = current_watch()
    if watch is None:
        yield call
        return
    start, began = time.time_ns(), time.monotonic()
    own = tool_span_id(watch.run_id, *place) if attempt <= 1 else watch.unique_id(tool)
    token = _tool_span.set(own)
    try:
        yield call
    except BaseException as problem:
        ended_by = "exception" if isinstance(problem, Exception) else "cancelled"
        call.error = call.error or ended_by
        raise
    finally:
        _tool_span.reset(token)
        with quietly():
            _tell_tool_call(watch, call, tool, call_id, attempt, given, own,
                            (start, time.monotonic() - began))  # fmt: skip


def _tell_tool_call(
    watch: ClaimWatch,
    call: ToolCallWatch,
    tool: str,
    call_id: str,
    attempt: int,
    given: str,
    own: int,
    when: tuple[int, float],
) -> None:
    if call.waits and call.result is None:
        return
    start, seconds = when
    if (numbers := watch.tools.counters) is not None:
        numbers.add("vel_tool_calls_total", tool, call.error or "ok")
        if not call.waits:
            numbers.observe("vel_tool_call_duration_seconds", tool, seconds=seconds)
    if call.waits:
        return  # started in another claim: `run_spans` creates its span when the run has ended
    attributes = watch.attributes("execute_tool") | {
        "gen_ai.tool.name": tool,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": call_id,
        "vel.attempt": attempt,
    }
    if watch.tools.content:
        attributes |= spans.of_tool_call(given, call.result)
    watch.put(f"execute_tool {tool}", own, start, attributes, error=call.error)


def tool_span_id(run_id: str, turn: int, position: int) -> int:
    """Return the span id of a call's first attempt, the parent of runs that the call starts."""
    return span_id_of("tool", run_id, turn, position)


class CommandWatch:
    """A command in a sandbox."""

    result: ExecutionResult


@contextmanager
def watched_command(kind: str, source: str) -> Iterator[CommandWatch]:
    """Record a command in a sandbox. The caller sets `result`.

    `kind` is the language, and `source` the command or the code.
    """
    told = CommandWatch()
    watch = current_watch()
    if watch is None:
        yield told
        return
    start, began = time.time_ns(), time.monotonic()
    error = ""
    try:
        yield told
    except BaseException as problem:
        error = type(problem).__name__
        raise
    finally:
        with quietly():
            _tell_command(watch, kind, source, getattr(told, "result", None), error,
                          (start, time.monotonic() - began))  # fmt: skip


def _tell_command(
    watch: ClaimWatch,
    kind: str,
    source: str,
    result: ExecutionResult | None,
    error: str,
    when: tuple[int, float],
) -> None:
    start, seconds = when
    outcome = "not_run" if result is None else _outcome(result)
    if (numbers := watch.tools.counters) is not None:
        numbers.add("vel_sandbox_commands_total", outcome)
        numbers.observe("vel_sandbox_command_duration_seconds", seconds=seconds)
    attributes: dict[str, AttributeValue] = {
        "vel.run.id": watch.run_id,
        "vel.sandbox.language": kind,
        "vel.sandbox.outcome": outcome,
    }
    if result is not None:
        attributes["process.exit.code"] = result.exit_code
    if watch.tools.content:
        attributes["process.command_line"] = spans.harmless(source)
    watch.put(
        "vel.sandbox.command", watch.unique_id("command"), start, attributes,
        parent_id=_tool_span.get(), error=error or ("" if outcome in ("ok", "failed") else outcome),
    )  # fmt: skip


def _outcome(result: ExecutionResult) -> str:
    """Return ok, failed (exit code), timed_out, cancelled, or killed (a limit or a signal)."""
    if result.timed_out:
        return "timed_out"
    if result.cancelled:
        return "cancelled"
    if result.exit_code == OVER_LIMIT_EXIT_CODE:
        return "killed"
    return "failed" if result.exit_code else "ok"
