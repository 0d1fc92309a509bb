"""Runs: from the first claim by a worker to the end.

A run ends with `run.completed`, `run.failed` or `run.cancelled`. After `run.failed` a person may
resume it, so more events may follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NotRequired

from typing_extensions import TypedDict

from agents.events.event import OMITTED, Event, Omitted


class Starter(TypedDict):
    """The schedule or webhook that started a run."""

    kind: str
    """`schedule`, `hook` (an inbound webhook), or `agent` for a subagent of their runs."""
    id: str | None
    """The id of the schedule or webhook. Null if it has been deleted."""
    name: str | None
    """The name of the schedule or webhook. Null if it has been deleted."""


class Usage(TypedDict):
    """Tokens of one model call, as the provider counts them."""

    input_tokens: int
    """Tokens of the prompt that were neither read from a cache nor written to one."""
    output_tokens: int
    """Tokens of the reply, reasoning included."""
    cache_read_tokens: int
    """Tokens of the prompt that were read from the prompt cache."""
    cache_write_tokens: int
    """Tokens of the prompt that were written to the prompt cache."""
    reasoning_tokens: NotRequired[int]
    """Tokens of the reasoning, which `output_tokens` includes. Missing if the provider does not
    count them."""


class RunUsage(TypedDict):
    """Tokens of all model calls of one run, without those of its subagents."""

    input_tokens: int
    """Tokens of prompts that were neither read from a cache nor written to one."""
    output_tokens: int
    """Tokens of the replies, reasoning included."""
    cache_read_tokens: int
    """Tokens of prompts that were read from the prompt cache."""
    cache_write_tokens: int
    """Tokens of prompts that were written to the prompt cache."""
    turns: int
    """The number of stored replies of the model."""


@dataclass(frozen=True, kw_only=True)
class RunStarted(Event):
    """A worker claims the run for the first time."""

    type: ClassVar[str] = "run.started"

    thread_id: str
    """The id of the run's thread."""
    message_id: int | None
    """The id of the message that the run answers."""
    agent: str
    """The agent's slug."""
    provider: str
    """The provider of the agent's first model, as `anthropic`. `scripted` asks no model."""
    model: str
    """The name of the agent's first model."""
    attempt: int
    """The number of the claim: 1, or more if a claim before it wrote no event."""
    source: str
    """How the run was created, as `web`, `api`, `cli`, `schedule`, `hook` or `subagent`."""
    started_by: Starter | Omitted = OMITTED
    """The schedule or webhook that started the run. Missing if a person or an API client did."""


@dataclass(frozen=True, kw_only=True)
class RunSuspended(Event):
    """The run parks: it holds no worker until it is resumed."""

    type: ClassVar[str] = "run.suspended"

    reason: str
    """`approval`: the run waits for decisions on calls; `children`: for subagents. Features add
    reasons, for example `budget`."""
    approval_ids: list[str] | Omitted = OMITTED
    """The ids of the pending approval requests. Missing with `children`."""
    asked_in: str | Omitted = OMITTED
    """The id of the run that has the request, if it is another run."""
    child_run_ids: list[str] | Omitted = OMITTED
    """With `children`: the ids of the subagents' runs that this run waits for."""


@dataclass(frozen=True, kw_only=True)
class RunResumed(Event):
    """The run is ready for a worker again, or another worker has taken it over."""

    type: ClassVar[str] = "run.resumed"

    reason: str
    """The reason, for people."""
    attempt: int | Omitted = OMITTED
    """The number of the claim, if the run was taken over from a worker that was lost."""


@dataclass(frozen=True, kw_only=True)
class RunCompleted(Event):
    """The run ends with an answer, in the transaction that stores the model's last reply."""

    type: ClassVar[str] = "run.completed"

    finish_reason: str
    """Why the model stopped: `end_turn`, `stop_sequence`, or what the provider says."""
    structured_output: Any = OMITTED
    """The answer as a JSON value, if the agent or the request asked for a form."""
    usage: RunUsage
    """Tokens of the run's model calls."""
    cost: str | None
    """US dollars as a decimal number, `0.001234`. Null if the price of a model is unknown."""


@dataclass(frozen=True, kw_only=True)
class RunFailed(Event):
    """The run ends without an answer. Its open calls and pending requests are closed."""

    type: ClassVar[str] = "run.failed"

    code: str
    """The error code, as `model_overloaded` or `limit_turns`."""
    message: str
    """The error message, for people."""
    retryable: bool
    """Whether the error may be temporary."""
    usage: RunUsage
    """Tokens of the run's model calls."""
    cost: str | None
    """US dollars as a decimal number. Null if the price of a model is unknown."""


@dataclass(frozen=True, kw_only=True)
class RunCancelled(Event):
    """The run ends because somebody or something cancelled it. Its open calls are closed."""

    type: ClassVar[str] = "run.cancelled"

    by: str
    """A user name, or `request` if the worker of the run carried out a cancel request."""
    reason: str
    """The reason that was given, or an empty text."""


RUN_ENDS = (RunCompleted.type, RunFailed.type, RunCancelled.type)
"""The types that end a run."""

EVENTS = [RunStarted, RunSuspended, RunResumed, RunCompleted, RunFailed, RunCancelled]
