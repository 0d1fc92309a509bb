"""Memory of an agent, set up for tests."""

from __future__ import annotations

from agents.models import Agent
from memory.actions.edits import change_memory
from memory.folders import Change
from memory.models import Operation
from memory.queries.files import file_state


def remembered(agent: Agent, **files: str) -> None:
    """Create knowledge files of `agent` by name: `notes` is knowledge/notes.md."""
    for name, content in files.items():
        path = f"knowledge/{name}.md"
        base = file_state(agent.pk, path).revision
        change_memory(agent.pk, Change(path, Operation.WRITE, content, base, "web"))


def skilled(agent: Agent, name: str = "weekly-report") -> str:
    """Create a skill of `agent` and return its text."""
    text = f"---\nname: {name}\ndescription: Writes one.\n---\nBegin with the numbers.\n"
    change_memory(agent.pk, Change(f"skills/{name}.md", Operation.WRITE, text, 0, "web"))
    return text
