"""The state of a driver while it has a run."""

from __future__ import annotations

import time
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
    """One claim of one run, from `claim_run` until the driver releases it."""

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
    turn: int
    tokens: int
    cost_microusd: int
    active_ms_before: int
    open_calls: list[Call] = field(default_factory=list)
    """The calls of the last turn, while any of them is open."""
    last_calls: list[Call] = field(default_factory=list)
    """The calls of the last turn, when they have ended."""
    late_notes: list[str] = field(default_factory=list)
    """Notes for the model that follow their results, each a JSON array of blocks."""
    started_here: set[tuple[int, int]] = field(default_factory=set)
    """(turn, position) of calls whose `started` this driver committed."""
    waits: dict[tuple[int, int], Waiting] = field(default_factory=dict)
    """Calls that continue when other runs have ended."""
    leaving: list[Leave] = field(default_factory=list)
    """Calls whose middleware releases the run, when the parallel calls have ended."""
    gate: Gate = field(init=False, repr=False)
    """Decides which calls may be made."""
    call_model: ModelHandler = field(init=False, repr=False)
    """A model call with all wraps."""
    call_tool: ToolHandler = field(init=False, repr=False)
    """An attempt of a tool call with all wraps."""
    claimed_at: float = field(default_factory=time.monotonic)
    _billed_ms: int = 0

    @property
    def agent_id(self) -> str:
        return self.run.agent_version.agent_id

    def known_tools(self) -> frozenset[str]:
        """Return the names of all tools that any agent can have, and of the run's own."""
        return known_tool_names() | self.toolset.tools.keys()

    def active_ms(self) -> int:
        """Return the milliseconds of work that are in no total, and count them as stored."""
        now = int((time.monotonic() - self.claimed_at) * 1000)
        fresh, self._billed_ms = now - self._billed_ms, now
        return fresh

    def keep_active(self, milliseconds: int) -> None:
        """Undo `active_ms`: these milliseconds were not stored."""
        self._billed_ms -= milliseconds

    def elapsed_seconds(self) -> float:
        """Return the time that drivers have spent on this run, without waits for people."""
        return self.active_ms_before / 1000 + time.monotonic() - self.claimed_at

    def say(self, role: Role, blocks_json: str) -> None:
        """Add a stored message to the conversation. The model's replies are counted separately."""
        self.conversation.append(role, blocks_json)
        self.meter.append(blocks_json)

    def drafts(self) -> list[EventDraft]:
        """Return the streamed output that is not written, and clear it."""
        return self.stream.take()
