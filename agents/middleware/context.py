"""Interfaces of the engine's services for a tool call: files, a sandbox, subagents and more.

The engine implements these protocols, and tools use only them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from agents.middleware.run_parts import Part
from agents.spec import AgentSpec, SubagentSpec
from sandbox.backends.protocol import FileBackend
from sandbox.base import BaseSandbox
from sandbox.workspace import Workspace

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TaskOrder:
    """One task for one subagent.

    `index` is its position among the tasks of the call. The subagent's run has the definition
    `spec`.
    """

    index: int
    subagent: SubagentSpec
    spec: AgentSpec
    message: str


@dataclass(frozen=True, slots=True)
class SubagentReport:
    """The state of a subagent's run. `text` is its answer; `error` says why there is none."""

    run_id: str
    index: int
    subagent: str
    status: str
    has_ended: bool
    text: str = ""
    error: str = ""


class Subagents(Protocol):
    """The subagents of a run. Each method raises `SubagentError`, whose text is for the model."""

    async def start(self, orders: Sequence[TaskOrder], at_once: int) -> Sequence[str]:
        """Return the ids of this call's subagent runs, in the order of `orders`.

        The first call of the method creates the runs. At most `at_once` subagents of this run work
        in parallel.
        """

    async def report(self, run_ids: Sequence[str]) -> Sequence[SubagentReport]:
        """Return the states of runs, which must be subagents of this run."""

    async def cancel(self, run_id: str) -> SubagentReport:
        """Cancel a subagent with all its own subagents, and return its state."""


class SubagentError(Exception):
    """Raised for an impossible request about subagents. The message is for the model."""


Preview = dict[str, Any]
"""The preview of a call by a trial, as JSON. Equal outcomes have the same `digest`."""


class ToolContext(Protocol):
    """The engine's services for one tool call."""

    run_id: str
    thread_id: str
    agent_id: str
    owner_id: int
    call_id: str
    spec: AgentSpec
    deadline: float
    """Seconds that the call may take: from the input, the agent's setting or the tool's default."""

    def part(self, kind: type[Part]) -> Part:
        """Return a feature's part of the run. `kind` is the feature's subclass of `RunPart`."""

    def state(self, kind: type[T]) -> T:
        """Return the state of a feature's middleware, an object of the class `kind`.

        It exists while one driver has the run: see `agents.kernel.middleware.RunContext.state`.
        """

    @property
    def subagents(self) -> Subagents: ...

    def tools_left(self) -> frozenset[str] | None:
        """Return the tools that features leave to subagents, or None for all tools."""

    @property
    def approved(self) -> Preview | None:
        """The approved preview of this call, which is still correct; None without a preview."""

    def files(self) -> FileBackend:
        """Return the thread's files. Opening and using them blocks: call this in `in_thread`."""

    def sandbox(self, timeout: float) -> BaseSandbox:
        """Return a sandbox over the thread's workspace. Raises `SandboxUnavailable`."""

    def workspace(self) -> Workspace:
        """Return the thread's directories. Blocks: call this in `in_thread`.

        Raises `SandboxError`.
        """

    async def takes_images(self) -> bool:
        """Return whether the run's model accepts images."""

    @property
    def marker(self) -> str:
        """The marker with which the processes of this run can be found and killed."""

    async def in_thread(
        self,
        function: Callable[..., T],
        *arguments: Any,
        on_cancel: Callable[[], None] | None = None,
    ) -> T:
        """Run blocking code in its own thread, and return its result.

        If the call is cancelled, `on_cancel` is called, which should make the code return. The call
        ends after the code, so no thread continues unnoticed.
        """

    async def in_database(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a function that queries the database in a short transaction; return its result."""

    def progress(self, text: str) -> None:
        """Show more output of the running call to clients. Any thread may call this."""
