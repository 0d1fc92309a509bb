"""What the engine lends a tool for one call: files, a sandbox, subagents and more.

The engine implements these protocols; tools know nothing else of it.
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
    """One task for one subagent. `index` is its place among the tasks of its call."""

    index: int
    subagent: SubagentSpec
    message: str


@dataclass(frozen=True, slots=True)
class SubagentReport:
    """A subagent's run as it is now. `text` is its answer, `error` why there is none."""

    run_id: str
    index: int
    subagent: str
    status: str
    has_ended: bool
    text: str = ""
    error: str = ""


class Subagents(Protocol):
    """The runs that a run has delegated to. Each method raises `SubagentError` for the model."""

    async def start(self, orders: Sequence[TaskOrder]) -> Sequence[str]:
        """The ids of this call's runs, which are made the first time, in the order of `orders`."""

    async def report(self, run_ids: Sequence[str]) -> Sequence[SubagentReport]:
        """Of this run's own children only."""

    async def cancel(self, run_id: str) -> SubagentReport:
        """End a child and all below it; how it is afterwards."""


class SubagentError(Exception):
    """What was asked of subagents cannot be done. The message is for the model."""


Preview = dict[str, Any]
"""What a trial of a call shows, as JSON. Its `digest` is the same for the same outcome."""


class ToolContext(Protocol):
    """What the engine lends a tool for one call."""

    run_id: str
    thread_id: str
    agent_id: str
    owner_id: int
    call_id: str
    spec: AgentSpec
    deadline: float
    """Seconds that the call may take, by its input, the agent's setting or the tool's default."""

    def part(self, kind: type[Part]) -> Part:
        """What a feature has for the run: its subclass of `RunPart`."""

    def state(self, kind: type[T]) -> T:
        """What the feature's middleware keeps while one driver has the run: its `run.state`."""

    @property
    def subagents(self) -> Subagents: ...

    @property
    def approved(self) -> Preview | None:
        """What a person was shown of this call, approved, and still holds; None without trial."""

    def files(self) -> FileBackend:
        """The thread's files. Opening and using them blocks: only within `in_thread`."""

    def sandbox(self, timeout: float) -> BaseSandbox:
        """A sandbox over the thread's workspace. Raises `SandboxUnavailable`."""

    def workspace(self) -> Workspace:
        """The directories of the thread. Blocks: only within `in_thread`. Raises `SandboxError`."""

    async def takes_images(self) -> bool:
        """Whether the run's model can look at pictures."""

    @property
    def marker(self) -> str:
        """The token by which what this run started can be found and killed."""

    async def in_thread(
        self,
        function: Callable[..., T],
        *arguments: Any,
        on_cancel: Callable[[], None] | None = None,
    ) -> T:
        """Run blocking code on a thread of its own.

        When the call is cancelled `on_cancel` is called, which should make the code return, and
        the call ends when it has: nothing goes on behind the engine's back.
        """

    async def in_database(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a function that queries the database, in a short transaction."""

    def progress(self, text: str) -> None:
        """Show watchers more output of a call that is still running. Safe from any thread."""
