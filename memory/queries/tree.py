"""An agent's memory as one tree: AGENTS.md, tools.json, skills/ and knowledge/."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F

from agents.models import Agent, AgentVersion, ApprovalRequest
from agents.states import ApprovalStatus, Decision
from memory.errors import NoSuchFile
from memory.limits import size_of
from memory.models import MemoryFile, MemoryRevision, Operation
from memory.paths import PROMPT, TOOLS, check_path, content_type_of
from memory.queries.state import FileState, file_state
from skills_app.actions.versions import skill_state
from skills_app.models import SkillVersion, Trust


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """One file as listings show it."""

    path: str
    content_type: str
    size_bytes: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class RevisionEntry:
    """One state that a file has been in, without its content. `by` is a user's name."""

    number: int
    operation: str
    size_bytes: int
    reason: str
    source: str
    by: str
    created_at: datetime
    is_deleted: bool
    approval_id: str | None
    """The request whose decision made it; None when a person did it by hand."""


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
    if not prefix or prefix.startswith("knowledge/"):
        files = MemoryFile.objects.filter(agent_id=agent_id, path__startswith=prefix)
        entries += [
            MemoryEntry(
                file.path, file.content_type, file.size_bytes, file.created_at, file.updated_at
            )
            for file in files.defer("content").order_by("path")
            if file.path.startswith(prefix)  # SQLite's LIKE folds case
        ]
    if not prefix or prefix == "skills/":
        entries += _skill_entries(agent_id)
    return entries


def _skill_entries(agent_id: str) -> list[MemoryEntry]:
    versions = SkillVersion.objects.filter(
        skill__agent_id=agent_id, skill__is_deleted=False, number=F("skill__version")
    ).exclude(trust=Trust.QUARANTINED)
    entries = []
    for version in versions.select_related("skill").order_by("skill__name"):
        skill, path = version.skill, f"skills/{version.skill.name}.md"
        size = size_of(version.content or "")
        entries.append(
            MemoryEntry(path, content_type_of(path), size, skill.created_at, skill.updated_at)
        )
    return entries


def memory_revisions(agent_id: str, path: str) -> list[RevisionEntry]:
    """Every state of the file at `path`, the latest first; versions for a skill.

    The two read-only files have none. Raises `memory.paths.InvalidPath`.
    """
    check_path(path)
    approvals = _approvals_by_revision(agent_id, path)
    if path.startswith("skills/"):
        versions = SkillVersion.objects.filter(
            skill__agent_id=agent_id, skill__name=skill_name(path)
        ).select_related("created_by")
        return [
            RevisionEntry(
                number=version.number,
                operation=_skill_operation(version),
                size_bytes=size_of(version.content or ""),
                reason=version.reason,
                source=version.source,
                by=version.created_by.get_username() if version.created_by else "",
                created_at=version.created_at,
                is_deleted=version.content is None,
                approval_id=approvals.get(version.number),
            )
            for version in versions.order_by("-number")
        ]
    revisions = MemoryRevision.objects.filter(agent_id=agent_id, path=path)
    return [
        RevisionEntry(
            number=revision.number,
            operation=revision.operation,
            size_bytes=revision.size_bytes,
            reason=revision.reason,
            source=revision.source,
            by=revision.created_by.get_username() if revision.created_by else "",
            created_at=revision.created_at,
            is_deleted=not revision.sha256,
            approval_id=approvals.get(revision.number),
        )
        for revision in revisions.select_related("created_by").defer("content").order_by("-number")
    ]


def _approvals_by_revision(agent_id: str, path: str) -> dict[int, str]:
    """The decided requests by the revision that each has made.

    An approved edit is the revision after the one it builds on, or is refused.
    """
    requests = ApprovalRequest.objects.filter(
        memory_edit__agent_id=agent_id,
        memory_edit__path=path,
        status=ApprovalStatus.DECIDED,
        decision__in=(Decision.APPROVE, Decision.EDIT),
    )
    return {base + 1: key for base, key in requests.values_list("memory_edit__base_revision", "id")}


def _skill_operation(version: SkillVersion) -> str:
    """What made a version, as far as its row tells: a restored one counts as written."""
    if version.content is None:
        return Operation.DELETE.value
    return Operation.IMPORT.value if version.source == "import" else Operation.WRITE.value


def revision_content(agent_id: str, path: str, number: int) -> str | None:
    """The file as it was at a revision, None where that deleted it.

    Raises `memory.paths.InvalidPath` and `memory.errors.NoSuchFile`.
    """
    check_path(path)
    if path.startswith("skills/"):
        versions = SkillVersion.objects.filter(
            skill__agent_id=agent_id, skill__name=skill_name(path), number=number
        )
        found = versions.values_list("content").first()
    else:
        revisions = MemoryRevision.objects.filter(agent_id=agent_id, path=path, number=number)
        found = revisions.values_list("content").first()
    if found is None:
        raise NoSuchFile(f"{path} has no revision {number}.")
    return found[0]
