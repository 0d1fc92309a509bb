"""The start of a subagent without a parent, with the parts that it would inherit."""

from __future__ import annotations

from typing import Any

from agents.features.subagents.options import WorksAlone
from agents.middleware.run_parts import Beginning, RunPart, run_parts
from agents.models import Run
from agents.spec import AgentSpec


class InheritedFromAgent(RunPart):
    """Gives a subagent that a program starts without a parent the parts that it would inherit.

    It comes after these parts in the order of parts.
    """

    @classmethod
    def begin(cls, run: Run, spec: AgentSpec, prepared: Any) -> Beginning:
        """Write the inherited parts, and return their notes.

        Raises `SubagentError` for a skill that the agent does not have.
        """
        own = spec.option(WorksAlone).works_as
        if own is None or run.parent_id is not None or not own.skills:
            return Beginning()
        notes = []
        for kind in run_parts():
            inherited = None if kind is cls else kind.load(run, spec).for_child(own)
            if inherited is not None:
                inherited.write(run, "")
                notes.append(inherited.note)
        return Beginning(note="\n\n".join(note for note in notes if note))


RUN_PARTS = [InheritedFromAgent]
