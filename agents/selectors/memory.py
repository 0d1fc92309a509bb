"""An agent's memory as one tree: AGENTS.md, tools.json, skills/ and knowledge/."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from agents.models import Agent, AgentVersion
from memory.limits import size_of
from memory.models import MemoryFile
from memory.paths import PROMPT, TOOLS, check_path, content_type_of
from memory.services.files import FileState, file_state
from skills_app.models import Skill
from skills_app.services.versions import skill_state


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """One file as listings show it."""

    path: str
    content_type: str
    size_bytes: int
    created_at: datetime
    updated_at: datetime


def skill_name(path: str) -> str:
    """The skill of a checked path `skills/NAME.md`."""
    return path.removeprefix("skills/").removesuffix(".md")


def memory_state(agent_id: str, path: str) -> FileState:
    """The file at `path` as it is now. Raises `memory.paths.InvalidPath` for an impossible one.

    The revision of a skill is its version; the two read-only files have none.
    """
    check_path(path)
    if path == PROMPT:
        prompt = Agent.objects.values_list("system_prompt", flat=True).get(pk=agent_id)
        return FileState(prompt, 0)
    if path == TOOLS:
        return FileState(_tools_json(agent_id), 0)
    if path.startswith("skills/"):
        return FileState(*skill_state(agent_id, skill_name(path)))
    return file_state(agent_id, path)


def _tools_json(agent_id: str) -> str:
    """The tools that the agent is configured with; null means all of its profile."""
    agent = Agent.objects.only("profile", "tools").get(pk=agent_id)
    return json.dumps({"profile": agent.profile, "tools": agent.tools}, indent=2) + "\n"


def list_memory_entries(agent_id: str, directory: str = "") -> list[MemoryEntry]:
    """The files below `directory` (all without one), in the order of their paths."""
    prefix = f"{directory.strip('/')}/" if directory.strip("/") else ""
    entries: list[MemoryEntry] = []
    if not prefix:
        version = AgentVersion.objects.filter(agent_id=agent_id).order_by("-number").first()
        agent = Agent.objects.get(pk=agent_id)
        changed = version.created_at if version else agent.updated_at
        for path in (PROMPT, TOOLS):
            size = size_of(memory_state(agent_id, path).content or "")
            entries.append(
                MemoryEntry(path, content_type_of(path), size, agent.created_at, changed)
            )
    if not prefix or "knowledge/".startswith(prefix) or prefix.startswith("knowledge/"):
        files = MemoryFile.objects.filter(agent_id=agent_id, path__startswith=prefix)
        entries += [
            MemoryEntry(
                file.path, file.content_type, file.size_bytes, file.created_at, file.updated_at
            )
            for file in files.defer("content").order_by("path")
        ]
    if not prefix or prefix == "skills/":
        for skill in Skill.objects.filter(agent_id=agent_id, is_deleted=False).order_by("name"):
            path = f"skills/{skill.name}.md"
            text = skill_state(agent_id, skill.name)[0] or ""
            entries.append(
                MemoryEntry(
                    path, content_type_of(path), size_of(text), skill.created_at, skill.updated_at
                )
            )
    return entries
