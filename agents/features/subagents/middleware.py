"""Delegation: tasks for subagents. Each is a separate run with its own context."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from agents.features.subagents.inputs import (
    FORMS,
    WAIT_SECONDS,
    CancelInput,
    ParallelTasksInput,
    SpawnInput,
    SpawnParallelInput,
    TaskInput,
    WaitInput,
    segment,
)
from agents.features.subagents.options import SubagentOptions
from agents.features.subagents.types import child_spec, find_subagent, subagents_of
from agents.middleware.base import Middleware, PromptContext, Tool, ToolResult, WaitForRuns, error
from agents.middleware.context import SubagentError, SubagentReport, TaskOrder, ToolContext
from agents.models import Effect
from agents.spec import AgentSpec


def _message(task: str, context: str | None) -> str:
    return f"Context:\n{context}\n\nTask: {task}" if context else task


def _orders(
    context: ToolContext, tasks: Sequence[tuple[str, str]]
) -> tuple[list[TaskOrder], dict[int, str]]:
    """Return the orders for (name, message), and the errors of invalid ones by position."""
    spec, left = context.spec, context.tools_left()
    orders: list[TaskOrder] = []
    problems: dict[int, str] = {}
    for index, (name, message) in enumerate(tasks):
        subagent = find_subagent(spec, name)
        if subagent is None:
            known = ", ".join(subagents_of(spec)) or "none"
            problems[index] = f"There is no subagent {name[:100]!r}. There are: {known}."
        else:
            child = child_spec(spec, subagent, left=left)
            orders.append(TaskOrder(index, subagent, child, message))
    return orders, problems


async def _start(context: ToolContext, orders: Sequence[TaskOrder]) -> Sequence[str]:
    at_once = context.spec.option(SubagentOptions).max_concurrent_subagents
    return await context.subagents.start(orders, at_once)


def _as_data(report: SubagentReport) -> dict[str, Any]:
    data: dict[str, Any] = {"subagent": report.subagent, "id": report.run_id}
    data["status"] = report.status
    if report.error:
        data["error"] = report.error
    if report.text or not report.error:
        data["result"] = report.text
    return data


async def task(context: ToolContext, given: TaskInput) -> ToolResult | WaitForRuns:
    """Give one task to one subagent; the result is its answer."""
    asked = [(given.subagent, _message(given.task, given.context))]
    orders, problems = _orders(context, asked)
    if problems:
        return error(problems[0], "unknown_subagent")
    try:
        run_ids = await _start(context, orders)
    except SubagentError as problem:
        return error(str(problem), "subagents")

    def answer(reports: Sequence[SubagentReport]) -> ToolResult:
        failed = reports[0].status != "completed"
        return ToolResult(
            _as_data(reports[0]), is_error=failed, code="subagent_failed" if failed else ""
        )

    return WaitForRuns(run_ids, answer)


async def parallel_tasks(
    context: ToolContext, given: ParallelTasksInput
) -> ToolResult | WaitForRuns:
    """Give several tasks. A failed one is an entry of the results; the others continue."""
    asked = [(item.subagent, _message(item.task, item.context)) for item in given.tasks]
    orders, problems = _orders(context, asked)
    collect = partial(_collected, problems, len(asked))
    if not orders:
        return collect([])
    try:
        return WaitForRuns(await _start(context, orders), collect)
    except SubagentError as problem:
        return error(str(problem), "subagents")


def _collected(
    problems: dict[int, str], count: int, reports: Sequence[SubagentReport]
) -> ToolResult:
    results: list[dict[str, Any]] = [{"error": problems.get(index, "")} for index in range(count)]
    for report in reports:
        results[report.index] = _as_data(report)
    good = sum(report.status == "completed" for report in reports)
    content: dict[str, Any] = {"results": results, "task_count": count, "success_count": good}
    errors = [
        f"task {index + 1}: {item['error']}"
        for index, item in enumerate(results)
        if item.get("error")
    ]
    if errors:
        content["errors"] = errors
    return ToolResult(content)


async def spawn_subagent(context: ToolContext, given: SpawnInput) -> ToolResult:
    """Start a subagent without waiting for it."""
    return await _spawn(context, [(given.agent, given.task)], several=False)


async def spawn_parallel(context: ToolContext, given: SpawnParallelInput) -> ToolResult:
    """Start several subagents without waiting for them."""
    return await _spawn(context, [(item.agent, item.task) for item in given.tasks], several=True)


async def _spawn(
    context: ToolContext, asked: Sequence[tuple[str, str]], *, several: bool
) -> ToolResult:
    orders, problems = _orders(context, asked)
    if problems and not several:
        return error(problems[0], "unknown_subagent")
    try:
        run_ids = await _start(context, orders) if orders else []
        reports = await context.subagents.report(run_ids)
    except SubagentError as problem:
        return error(str(problem), "subagents")
    started: list[dict[str, Any]] = [{"error": problems.get(i, "")} for i in range(len(asked))]
    for report in reports:
        started[report.index] = {
            "id": report.run_id,
            "status": report.status,
            "agent_type": report.subagent,
        }
    return ToolResult(started if several else started[0])


async def wait_subagent(context: ToolContext, given: WaitInput) -> ToolResult | WaitForRuns:
    """Park until a subagent has ended, or the time is over."""
    try:
        await context.subagents.report([given.id])
    except SubagentError as problem:
        return error(str(problem), "unknown_subagent")

    def answer(reports: Sequence[SubagentReport]) -> ToolResult:
        data = _as_data(reports[0])
        if not reports[0].has_ended:
            data.pop("result", None)
            data["note"] = "It has not ended yet. Wait again, continue, or cancel it."
        return ToolResult(data)

    return WaitForRuns([given.id], answer, given.timeout or WAIT_SECONDS)


async def cancel_subagent(context: ToolContext, given: CancelInput) -> ToolResult:
    """Cancel a subagent and all of its descendants."""
    try:
        report = await context.subagents.cancel(given.id)
    except SubagentError as problem:
        return error(str(problem), "unknown_subagent")
    if report.has_ended:
        return ToolResult(_as_data(report))
    # Its driver ends it in a moment.
    return ToolResult({"subagent": report.subagent, "id": report.run_id, "status": "cancelled"})


def _tool(name: str, run: Callable[..., Any], **options: Any) -> Tool[Any]:
    form = FORMS[name]
    return Tool(form.name, form.description, form.input_model, run, Effect.READ, **options)


TASK = _tool("task", task, outlives_driver=True)
PARALLEL_TASKS = _tool("parallel_tasks", parallel_tasks, outlives_driver=True)
BACKGROUND = (
    _tool("spawn_subagent", spawn_subagent),
    _tool("spawn_parallel", spawn_parallel),
    _tool("wait_subagent", wait_subagent, outlives_driver=True),
    _tool("cancel_subagent", cancel_subagent, runs_alone=True),
)

_SEEN = "They see the same files as you and cannot change any either."
_DIFFERENT_FILES = "give tasks that run at the same time different files."
_SAME_ROWS = f"They have the same files as you: {_DIFFERENT_FILES}"
_SAME_DIRECTORY = (
    "They work in the same directories as you, also in /sandbox/workspace/: " + _DIFFERENT_FILES
)
_OWN_WORKSPACES = """\
They share /sandbox/shared/{puts} and /sandbox/outputs/ with you. Each has its \
own workspace{readers}."""

_CHILD = """\
## Your task
You are a subagent: another agent gave you this task and reads only your last message.
{how}"""
_RESULTS = """\
- Return a short summary with the paths of your files.
- Write long results to {shared}, research to {shared}research/, drafts to \
{shared}drafts/. Use absolute paths."""
_ALONE = "- The agent that asks you does not see your /sandbox/workspace/."
_NOT_ALONE = """\
- Other agents may be using the same files{where}: change only those of your task, and read a \
file before you replace it."""
_READING = "- You can change no file: put what you found into your answer."


def _parents_files(context: PromptContext) -> str:
    """Return a sentence about the files that subagents share with their agent."""
    if context.spec.read_only:
        return _SEEN
    if not context.spec.sandbox:
        return _SAME_ROWS
    if context.in_own_directory:
        return _SAME_DIRECTORY
    reading = [item.name for item in subagents_of(context.spec).values() if item.read_only]
    readers = f", but {', '.join(reading)} see yours" if reading else ""
    puts = " (put files for them there)" if context.changes_files else ""
    return _OWN_WORKSPACES.format(puts=puts, readers=readers)


def _childs_files(context: PromptContext) -> str:
    if not context.changes_files:
        return _READING
    if not context.spec.sandbox:
        return f"{_RESULTS.format(shared='/shared/')}\n{_NOT_ALONE.format(where='')}"
    results = _RESULTS.format(shared="/sandbox/shared/")
    if context.in_own_directory:
        return f"{results}\n{_NOT_ALONE.format(where=', also in /sandbox/workspace/')}"
    return f"{results}\n{_ALONE}"


class SubagentsMiddleware(Middleware):
    name = "subagents"
    profiles = frozenset({"full", "sandbox_only"})

    def tools(self, spec: AgentSpec) -> Sequence[Tool[Any]]:
        if not subagents_of(spec):
            return ()
        if spec.profile == "sandbox_only":
            return (TASK,)
        background = BACKGROUND if spec.option(SubagentOptions).background_subagents else ()
        return (TASK, PARALLEL_TASKS, *background)

    def every_tool(self) -> Sequence[Tool[Any]]:
        return (TASK, PARALLEL_TASKS, *BACKGROUND)

    def prompt(self, context: PromptContext) -> str:
        spec = context.spec
        parts = []
        if "task" in context.tool_names or "parallel_tasks" in context.tool_names:
            parts.append(segment(subagents_of(spec).values(), _parents_files(context)))
        if spec.subagent:
            parts.append(_CHILD.format(how=_childs_files(context)))
        return "\n\n".join(parts)


MIDDLEWARE = (SubagentsMiddleware(),)
