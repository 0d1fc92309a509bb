"""The state of a driver while it executes a run."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field

from agents.engine.files.workspaces import ThreadFiles
from agents.engine.gate import Gate
from agents.engine.process.deltas import DeltaStream
from agents.engine.process.heartbeat import RunHandle
from agents.engine.prompt.token_count import Meter
from agents.engine.storage.database import Database
from agents.engine.storage.journal import Call, Waiting, Writer
from agents.events.append import EventDraft
from agents.kernel.chain import Chain
from agents.kernel.middleware import Leave, ModelHandler, RunContext, ToolHandler
from agents.kernel.window import Window
from agents.middleware.registry import Toolset, known_tool_names
from agents.middleware.run_parts import RunParts
from agents.models import Run
from agents.providers.base import Conversation, PromptHead, Provider, Role
from agents.spec import AgentSpec


@dataclass
class Session:
    """One claim of one run, from `claim_run` until the driver releases the run."""

    context: RunContext
    """The run as its middleware sees it."""
    chain: Chain
    run: Run
    spec: AgentSpec
    toolset: Toolset
    writer: Writer
    handle: RunHandle
    database: Database
    threads: Executor
    provider: Provider
    head: PromptHead
    conversation: Conversation
    window: Window
    meter: Meter
    stream: DeltaStream
    files: ThreadFiles
    parts: RunParts
    read_uploads: Callable[[Run], Awaitable[None]]
    """Converts the files of the message of another run of the thread for the model, once."""
    turn: int
    tokens: int
    cost_microusd: int
    active_ms_before: int
    open_calls: list[Call] = field(default_factory=list)
    """The calls of the last turn, while one of them is open."""
    last_calls: list[Call] = field(default_factory=list)
    """The calls of the last turn, when all have ended."""
    late_notes: list[str] = field(default_factory=list)
    """Notes for the model after the results of the last turn, each a JSON array of blocks."""
    started_here: set[tuple[int, int]] = field(default_factory=set)
    """(turn, position) of each call whose event `started` this driver has committed."""
    waits: dict[tuple[int, int], Waiting] = field(default_factory=dict)
    """What calls wait for that continue when other runs have ended."""
    leaving: list[Leave] = field(default_factory=list)
    """Calls whose middleware releases the run as soon as the parallel calls have ended."""
    gate: Gate = field(init=False, repr=False)
    """The gate, which decides which calls may be made."""
    call_model: ModelHandler = field(init=False, repr=False)
    """A function that calls the model through all middleware wraps."""
    call_tool: ToolHandler = field(init=False, repr=False)
    """A function that attempts a tool call through all middleware wraps."""
    claimed_at: float = field(default_factory=time.monotonic)
    _billed_ms: int = 0

    @property
    def agent_id(self) -> str:
        return self.run.agent_version.agent_id

    def known_tools(self) -> frozenset[str]:
        """Return the names of all tools that any agent can have, and of this run's own tools."""
        return known_tool_names() | self.toolset.tools.keys()

    def active_ms(self) -> int:
        """Return the milliseconds of work since the last call of this method.

        The caller adds them to the run's total.
        """
        now = int((time.monotonic() - self.claimed_at) * 1000)
        fresh, self._billed_ms = now - self._billed_ms, now
        return fresh

    def keep_active(self, milliseconds: int) -> None:
        """Count milliseconds of `active_ms` again that the caller could not store."""
        self._billed_ms -= milliseconds

    def elapsed_seconds(self) -> float:
        """Return the seconds that drivers have spent on this run, without waits for people."""
        return self.active_ms_before / 1000 + time.monotonic() - self.claimed_at

    def say(self, role: Role, blocks_json: str, sent: str | None = None) -> None:
        """Add a stored message to the conversation. Replies of the model are added elsewhere.

        `sent` is the form with the bytes of its pictures, if it has any.
        """
        self.conversation.append(role, blocks_json if sent is None else sent)
        self.meter.append(blocks_json)

    def drafts(self) -> list[EventDraft]:
        """Return the streamed output that is not written yet, and forget it."""
        return self.stream.take()
