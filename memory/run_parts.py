"""The knowledge of the agent in the prompts of its runs.

An epoch keeps the knowledge of its start, so that the beginning of the prompt stays the same. Later
runs of the thread get a note about changed files instead.
"""

from __future__ import annotations

from typing import Any, ClassVar

from agents.middleware.run_parts import Beginning, RunPart
from agents.models import Run
from agents.spec import ALL_TOOLS, AgentSpec
from memory.queries.prompt import Knowledge, changes_since, knowledge_of


class RunKnowledge(RunPart):
    label: ClassVar[str] = "memory"

    def __init__(self, agent_id: str = "") -> None:
        self._agent_id = agent_id

    @classmethod
    def begin(cls, run: Run, spec: AgentSpec, prepared: Any) -> Beginning:
        if run.number == 1 or not _reads(spec):
            return Beginning()
        earlier = Run.every.filter(thread=run.thread_id, number__lt=run.number)
        since = earlier.order_by("-number").values_list("created_at", flat=True).first()
        if since is None:
            return Beginning()
        agent_id = run.agent_version.agent_id
        changed = changes_since(agent_id, since, thread_id=run.thread_id)
        if not changed:
            return Beginning()
        return Beginning(note=f"Your memory has changed since: {', '.join(changed)}.")

    @classmethod
    def load(cls, run: Run, spec: AgentSpec) -> RunKnowledge:
        return cls(run.agent_version.agent_id if _reads(spec) else "")

    def prompt_content(self) -> Knowledge:
        return knowledge_of(self._agent_id) if self._agent_id else Knowledge()


def _reads(spec: AgentSpec) -> bool:
    """Return whether the agent may have `read_memory`, whose middleware shows the knowledge."""
    tools = spec.tools
    return spec.profile == "full" and (
        tools is None or ALL_TOOLS in tools or "read_memory" in tools
    )


RUN_PARTS = [RunKnowledge]
