"""The templates, read from their files."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from agents.agent_files.reading import read_document
from agents.agent_files.writing import write_document

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class AgentTemplate:
    """A template. `needs` describes what an operator should give the agent; it can be empty."""

    slug: str
    name: str
    description: str
    needs: str
    data: dict[str, Any]
    """An agent's file, with the behaviour patterns in its prompt."""

    def file(self, *, name: str, slug: str, ask_before: Collection[str] = ()) -> str:
        """Return the file of an agent of this name, as `vel agents import` accepts it.

        Calls of the tools in `ask_before` require approval.
        """
        data = {**self.data, "name": name, "slug": slug}
        if ask_before:
            asks = self.data.get("interrupt_on", {})
            data["interrupt_on"] = {**asks, **dict.fromkeys(ask_before, True)}
        return write_document(data)


@lru_cache(maxsize=1)
def agent_templates() -> dict[str, AgentTemplate]:
    """All by slug, in the order of their names."""
    found = [_read(path) for path in sorted(_HERE.glob("*.yaml"))]
    return {template.slug: template for template in found}


def builder_prompt() -> str:
    """Return the prompt of the agent that builds agents with people."""
    return (_HERE / "builder.md").read_text(encoding="utf-8").strip()


def _read(path: Path) -> AgentTemplate:
    data = read_document(path.read_text(encoding="utf-8")).data
    needs = data.pop("needs", "")
    data["system_prompt"] = f"{data['system_prompt'].strip()}\n\n{BEHAVIOUR}"
    return AgentTemplate(data["slug"], data["name"], data["description"], needs, data)


BEHAVIOUR = """\
## How you talk
- List plainly the things you can do (✅), cannot, or only with a person's help (⚠️).
- Where there are several ways, offer them as A), B), C), a line each, and ask which one is wanted.
- Explain work of several steps as a numbered list before you start.
- Name the automatic steps, those that need a person, and those to automate later.

## How you learn
- When you are corrected, acknowledge it in one line and state what you will remember.
- Propose it with `write_memory`, with the reason; say that it counts once it has been approved.

## What you suggest
- Work that repeats is worth a skill: suggest one and describe its content.
- If a tool or a permission is missing, name it and the work it would make possible.
- One suggestion at a time, at the end, never instead of the work."""
