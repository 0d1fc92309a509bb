"""The agent's and the person's knowledge in the prompts of runs.

An epoch (the runs of a thread with the same start of the prompt) keeps the knowledge of its first
run, so that the provider's prompt cache stays valid. Later runs get a note about changed files
instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from agents.middleware.run_parts import Beginning, RunPart
from agents.models import Run
from agents.spec import ALL_TOOLS, AgentSpec
from memory.queries.prompt import Knowledge, changes_since, knowledge_of
from memory.queries.readers import personal_reader


@dataclass(frozen=True, slots=True)
class RunMemory:
    """The memory that a prompt contains. `personal` is None if the run reads no `me/`."""

    shared: Knowledge = field(default_factory=Knowledge)
    personal: Knowledge | None = None


class RunKnowledge(RunPart):
    label: ClassVar[str] = "memory"

    def __init__(self, agent_id: str = "", person_id: int | None = None) -> None:
        self._agent_id = agent_id
        self.person_id = person_id
        """The person with the `me/` that the run reads, or None."""

    @classmethod
    def begin(cls, run: Run, spec: AgentSpec, prepared: Any) -> Beginning:
        if run.number == 1 or not _reads(spec):
            return Beginning()
        earlier = Run.every.filter(thread=run.thread_id, number__lt=run.number)
        since = earlier.order_by("-number").values_list("created_at", flat=True).first()
        if since is None:
            return Beginning()
        agent_id = run.agent_version.agent_id
        changed = changes_since(
            agent_id, since, thread_id=run.thread_id, person_id=personal_reader(run)
        )
        if not changed:
            return Beginning()
        return Beginning(note=f"Your memory has changed since: {', '.join(changed)}.")

    @classmethod
    def load(cls, run: Run, spec: AgentSpec) -> RunKnowledge:
        if not _reads(spec):
            return cls()
        return cls(run.agent_version.agent_id, personal_reader(run))

    def prompt_key(self) -> Any:
        # A run that must not read `me/` gets a new prompt instead of one that contains it.
        return self.person_id

    def prompt_content(self) -> RunMemory:
        if not self._agent_id:
            return RunMemory()
        if self.person_id is None:
            return RunMemory(knowledge_of(self._agent_id))
        return RunMemory(knowledge_of(self._agent_id), knowledge_of(self._agent_id, self.person_id))


def _reads(spec: AgentSpec) -> bool:
    """Return whether the agent may have `read_memory`; otherwise, its prompts show no knowledge."""
    tools = spec.tools
    return spec.profile == "full" and (
        tools is None or ALL_TOOLS in tools or "read_memory" in tools
    )


RUN_PARTS = [RunKnowledge]
