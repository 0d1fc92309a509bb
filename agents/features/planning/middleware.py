"""The tools that write and show the to-do list, and a segment of the prompt."""

from __future__ import annotations

from typing import Any

from agents.features.planning import todo_list
from agents.features.planning.events import TodosUpdated
from agents.features.planning.todo_list import ReadTodosInput, TodoError, WriteTodosInput
from agents.features.planning.todos import read_plan, store_plan
from agents.middleware.base import Middleware, PromptContext, Tool, ToolResult, error
from agents.middleware.context import ToolContext
from agents.models import Effect
from agents.spec import AgentSpec


async def write_todos(context: ToolContext, given: WriteTodosInput) -> ToolResult:
    """Replace the list, or change it with the older form. It is stored together with the result."""
    before = await context.in_database(read_plan, context.thread_id)
    try:
        plan = todo_list.written(before, given)
    except TodoError as problem:
        return error(str(problem), "invalid")
    return ToolResult(
        todo_list.write_result(plan),
        events=[TodosUpdated(call_id=context.call_id, **plan.data())],
        commit=lambda: store_plan(context.thread_id, plan),
    )


async def read_todos(context: ToolContext, given: ReadTodosInput) -> ToolResult:
    plan = await context.in_database(read_plan, context.thread_id)
    return ToolResult(todo_list.read_result(plan))


class PlanningMiddleware(Middleware):
    """`write_todos` and, in the full profile, `read_todos`."""

    name = "planning"
    profiles = frozenset({"full", "sandbox_only"})

    def tools(self, spec: AgentSpec) -> list[Tool[Any]]:
        # READ, since both only use rows that commit with the result, and can run again after a
        # crash.
        tools: list[Tool[Any]] = [
            Tool(
                todo_list.WRITE,
                todo_list.WRITE_DESCRIPTION,
                WriteTodosInput,
                write_todos,
                Effect.READ,
                runs_alone=True,
            )
        ]
        if spec.profile == "full":
            tools.append(
                Tool(
                    todo_list.READ,
                    todo_list.READ_DESCRIPTION,
                    ReadTodosInput,
                    read_todos,
                    Effect.READ,
                )
            )
        return tools

    def prompt(self, context: PromptContext) -> str:
        return todo_list.PROMPT if todo_list.WRITE in context.tool_names else ""


MIDDLEWARE = [PlanningMiddleware()]
