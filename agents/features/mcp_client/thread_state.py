"""What MCP programs keep goes with its thread to another machine."""

from __future__ import annotations

from agents.kernel.thread_state import ThreadState
from agents.services.mcp_state_moves import bring_state, store_state
from agents.services.mcp_state_rows import forget_state, last_state, record_state
from sandbox.snapshots import SnapshotLimits
from sandbox.workspace import Workspace


class ProgramStates(ThreadState):
    field = "mcp_state"
    lost = "What the programs of MCP servers had kept is lost: they begin anew."
    restored = (
        "What the programs of MCP servers had kept is as it was at the last end or wait of a run."
    )
    too_large = "What its MCP programs keep is more than a snapshot holds."

    def last(self, thread_id: str) -> str | None:
        return last_state(thread_id)

    def record(self, thread_id: str, stored: str) -> None:
        record_state(thread_id, stored)

    def forget(self, thread_id: str) -> None:
        forget_state(thread_id)

    def store(self, workspace: Workspace, limits: SnapshotLimits) -> str | None:
        return store_state(workspace, limits)

    def restore(self, workspace: Workspace, stored: str) -> bool:
        return bring_state(workspace, stored)


STATES = [ProgramStates()]
