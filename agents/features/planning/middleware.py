"""The tools that write and show the to-do list, and a segment of the prompt."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from agents.features.planning.events import TodosUpdated
from agents.features.planning.queries import TOOL
from agents.features.planning.todos import (
    TodoDelta,
    TodoDraft,
    TodoError,
    apply_delta,
    check_todos,
    read_todos,
    store_todos,
    todos_as_data,
    todos_as_markdown,
)
from agents.middleware.base import Middleware, PromptContext, Tool, ToolResult, error
from agents.middleware.context import ToolContext
from agents.models import Effect
from agents.spec import AgentSpec


class TodoInput(BaseModel):
    model_config = ConfigDict(extra="ignore")

    content: str
    status: str = Field(
        default="pending",
        json_schema_extra={"enum": ["pending", "in_progress", "completed", "blocked"]},
    )
    active_form: str = ""
    note: str = ""


class BlockedInput(BaseModel):
    id: str
    reason: str = ""


class WriteTodosInput(BaseModel):
    """`todos` replaces the list. The other fields are the older form: changes to the list."""

    todos: list[TodoInput] | None = None
    current_task: str | None = None
    next_steps: list[str] | None = None
    completed: list[str] | None = None
    blocked: list[BlockedInput] | None = None

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> Any:
        # The model sees only the first form.
        schema = handler.resolve_ref_schema(handler(core_schema))
        schema["properties"] = {"todos": schema["properties"]["todos"]}
        schema["required"] = ["todos"]
        return schema


class ReadTodosInput(BaseModel):
    pass


async def write_todos(context: ToolContext, given: WriteTodosInput) -> ToolResult:
    """Replace the list, or change it with the older form. It is stored together with the result."""
    try:
        if given.todos is not None:
            drafts = [TodoDraft(**todo.model_dump()) for todo in given.todos]
        elif given.current_task is None and not (
            given.next_steps or given.completed or given.blocked
        ):
            return error("Give `todos`: the whole list with a status for each item.", "invalid")
        else:
            present = await context.in_database(read_todos, context.thread_id)
            delta = TodoDelta(
                current_task=given.current_task or "",
                next_steps=given.next_steps or [],
                completed=given.completed or [],
                blocked={item.id: item.reason for item in given.blocked or []},
            )
            drafts = apply_delta(present, delta)
        drafts = check_todos(drafts)
    except TodoError as problem:
        return error(str(problem), "invalid")
    counts = {
        name: sum(draft.status == name for draft in drafts)
        for name in ("pending", "in_progress", "completed", "blocked")
    }
    return ToolResult(
        {
            "todos": todos_as_markdown(drafts),
            "ids": [f"todo_{number}" for number in range(len(drafts))],
            "counts": counts,
        },
        events=[TodosUpdated(todos=todos_as_data(drafts))],
        commit=lambda: store_todos(context.thread_id, drafts),
    )


async def read_todos_tool(context: ToolContext, given: ReadTodosInput) -> ToolResult:
    drafts = await context.in_database(read_todos, context.thread_id)
    return ToolResult({"todos": todos_as_data(drafts)})


class PlanningMiddleware(Middleware):
    """`write_todos` and, in the full profile, `read_todos`."""

    name = "planning"
    profiles = frozenset({"full", "sandbox_only"})

    def tools(self, spec: AgentSpec) -> list[Tool[Any]]:
        # READ, since both only use rows that commit with the result, and can run again after a
        # crash.
        tools: list[Tool[Any]] = [
            Tool(
                TOOL,
                "Replace your to-do list. Use it for work of several steps: keep one item "
                "in_progress, and mark each completed as soon as it is really done.",
                WriteTodosInput,
                write_todos,
                Effect.READ,
                runs_alone=True,
            )
        ]
        if spec.profile == "full":
            tools.append(
                Tool(
                    "read_todos",
                    "Show your to-do list.",
                    ReadTodosInput,
                    read_todos_tool,
                    Effect.READ,
                )
            )
        return tools

    def prompt(self, context: PromptContext) -> str:
        if TOOL not in context.tool_names:
            return ""
        return (
            "## Planning\n"
            "For work of several steps, first write the steps with `write_todos`; keep exactly one "
            "in_progress, tick each off when it is done, and change the plan when you learn more. "
            "Skip it for a single simple step."
        )


MIDDLEWARE = [PlanningMiddleware()]
