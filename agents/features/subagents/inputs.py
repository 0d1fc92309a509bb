"""The tools that delegate, as a model sees them. They need no Django."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pydantic import AliasChoices, BaseModel, Field

from agents.features.subagents.types import GENERAL
from agents.spec import SubagentSpec

MAX_TASKS = 100
"""Tasks of one call."""
WAIT_SECONDS = 300.0
_WHO = AliasChoices("subagent", "subagent_type", "agent", "agent_type")
_WHAT = AliasChoices("task", "description", "prompt")


class TaskInput(BaseModel):
    subagent: str = Field(default=GENERAL, validation_alias=_WHO)
    task: str = Field(validation_alias=_WHAT, min_length=1)
    context: str | None = None


class ParallelTasksInput(BaseModel):
    tasks: list[TaskInput] = Field(min_length=1, max_length=MAX_TASKS)


class SpawnInput(BaseModel):
    task: str = Field(validation_alias=_WHAT, min_length=1)
    agent: str = Field(
        default=GENERAL,
        validation_alias=AliasChoices("agent", "agent_type", "subagent", "subagent_type"),
    )


class SpawnParallelInput(BaseModel):
    tasks: list[SpawnInput] = Field(min_length=1, max_length=MAX_TASKS)


class WaitInput(BaseModel):
    id: str
    timeout: float | None = Field(default=None, gt=0, le=86_400)


class CancelInput(BaseModel):
    id: str


class Form(NamedTuple):
    """A tool without its implementation."""

    name: str
    description: str
    input_model: type[BaseModel]


FORMS = {
    form.name: form
    for form in (
        Form(
            "task",
            "Give a task to a subagent with its own context and get its answer. It knows only your "
            "text: name the work, the files to use and the result to return.",
            TaskInput,
        ),
        Form(
            "parallel_tasks",
            "Give tasks to several subagents in parallel and get all answers, in order.",
            ParallelTasksInput,
        ),
        Form("spawn_subagent", "Start a subagent, do not wait; get its id.", SpawnInput),
        Form(
            "spawn_parallel",
            "Start several subagents, do not wait; get their ids.",
            SpawnParallelInput,
        ),
        Form(
            "wait_subagent",
            "Wait for a started subagent, at most `timeout` seconds (300), and get its answer.",
            WaitInput,
        ),
        Form("cancel_subagent", "End a started subagent.", CancelInput),
    )
}
"""In the order in which a model sees them."""

_SEGMENT = """\
## Subagents
{names}
{files}Delegate deep or separate work, never a step that is quick to do."""


def segment(subagents: Iterable[SubagentSpec], files: str = "") -> str:
    """Return the segment of the prompt of an agent.

    `files` is a sentence about the files that its subagents share with it.
    """
    names = "\n".join(f"- {item.name}: {item.description}" for item in subagents)
    return _SEGMENT.format(names=names, files=f"{files} " if files else "")
