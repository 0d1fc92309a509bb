"""Queries for one file of an agent's memory with its content, for pages, API and CLI."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import Sum

from agents.middleware.registry import toolset_for
from agents.models import Agent, AgentVersion, ApprovalRequest
from agents.services.agent_definitions.actions import build_spec
from agents.services.errors import ServiceError
from agents.states import ApprovalStatus, Decision
from memory.errors import NoSuchFile, Purged
from memory.folders import FileState, MemoryEntry, RevisionEntry, folder_of, folders
from memory.limits import size_of
from memory.models import MemoryFile
from memory.paths import (
    PERSONAL,
    PROMPT,
    READ_ONLY,
    TOOLS,
    check_path,
    content_type_of,
    person_at,
)
from memory.queries.rows import file_at, files_of, revisions_at


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A current file. `revision` is 0 for the two read-only files, which have no revisions."""

    path: str
    content: str
    content_type: str
    size_bytes: int
    revision: int
    updated_at: datetime

    @property
    def is_read_only(self) -> bool:
        return self.path in READ_ONLY


def memory_file(agent_id: str, path: str, person_id: int | None = None) -> ShownFile | None:
    """Return the file at `path`, None if it does not exist. Raises `memory.paths.InvalidPath`.

    In this module, `person_id` is the reader, who owns the files in `me/`.
    """
    check_path(path)
    state = memory_state(agent_id, path, person_id)
    if state.content is None:
        return None
    updated_at = _updated_at(agent_id, path, person_id)
    if updated_at is None:
        return None  # deleted since the first query
    return ShownFile(
        path=path,
        content=state.content,
        content_type=content_type_of(path),
        size_bytes=size_of(state.content),
        revision=state.revision,
        updated_at=updated_at,
    )


def _updated_at(agent_id: str, path: str, person_id: int | None) -> datetime | None:
    """Return when the file got its content; for a settings file, when the agent last changed."""
    if path in READ_ONLY:
        version = AgentVersion.objects.filter(agent_id=agent_id).order_by("-number").first()
        return version.created_at if version else Agent.objects.get(pk=agent_id).updated_at
    if (folder := folder_of(path)) is not None:
        return folder.updated_at(agent_id, path)
    files = file_at(agent_id, path, person_id)
    return files.values_list("updated_at", flat=True).first()


def memory_state(agent_id: str, path: str, person_id: int | None = None) -> FileState:
    """Return the current state of the file at `path`. Raises `memory.paths.InvalidPath`.

    The revision of the two read-only files is 0.
    """
    check_path(path)
    if path == PROMPT:
        return FileState(Agent.objects.get(pk=agent_id).system_prompt, 0)
    if path == TOOLS:
        return FileState(_tools_json(agent_id), 0)
    if (folder := folder_of(path)) is not None:
        return folder.state(agent_id, path)
    return file_state(agent_id, path, person_id)


def _tools_json(agent_id: str) -> str:
    """Return tools.json: the agent's profile and the tools of its next run.

    The tools are null if the agent's definition is invalid at present.
    """
    agent = Agent.objects.get(pk=agent_id)
    tools: list[dict[str, str]] | None = None
    with suppress(ServiceError, ValueError):
        found = toolset_for(build_spec(agent)).tools.values()
        tools = [{"name": tool.name, "description": tool.description} for tool in found]
    return json.dumps({"profile": agent.profile, "tools": tools}, indent=2) + "\n"


def list_memory_entries(
    agent_id: str, directory: str = "", person_id: int | None = None
) -> list[MemoryEntry]:
    """Return the files below `directory`, or all files if it is "".

    All files are AGENTS.md and tools.json, then the directories `knowledge`, `me` and `skills` in
    this order, each sorted by path. Without `person_id`, files below `me/` are omitted.
    """
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
    own = files_of(agent_id, person_id) if person_id is not None else MemoryFile.every.none()
    for top, rows in (("knowledge/", files_of(agent_id)), (f"{PERSONAL}/", own)):
        if prefix and not prefix.startswith(top):
            continue
        files = rows.filter(path__startswith=prefix)
        entries += [
            MemoryEntry(
                file.path, file.content_type, file.size_bytes, file.created_at, file.updated_at
            )
            for file in files.defer("content").order_by("path")
            if file.path.startswith(prefix)  # SQLite's LIKE folds case
        ]
    for folder in folders():
        if not prefix or prefix == folder.prefix:
            entries += folder.entries(agent_id)
    return entries


def memory_revisions(agent_id: str, path: str, person_id: int | None = None) -> list[RevisionEntry]:
    """Return all revisions of the file at `path`, the latest first.

    The two read-only files have no revisions. Raises `memory.paths.InvalidPath`.
    """
    check_path(path)
    approvals = _approvals_by_revision(agent_id, path, person_id)
    if (folder := folder_of(path)) is not None:
        return [
            replace(entry, approval_id=approvals.get(entry.number))
            for entry in folder.revisions(agent_id, path)
        ]
    revisions = revisions_at(agent_id, path, person_id)
    return [
        RevisionEntry(
            number=revision.number,
            operation=revision.operation,
            size_bytes=revision.size_bytes,
            reason=revision.reason,
            source=revision.source,
            by=revision.created_by.get_username() if revision.created_by else "",
            created_at=revision.created_at,
            is_deleted=not revision.sha256 and revision.purged_at is None,
            approval_id=approvals.get(revision.number),
            is_purged=revision.purged_at is not None,
        )
        for revision in revisions.select_related("created_by").defer("content").order_by("-number")
    ]


def _approvals_by_revision(agent_id: str, path: str, person_id: int | None) -> dict[int, str]:
    """Map each revision of a file to the id of the approval request that led to it.

    An approved edit either makes the revision after its base revision, or is refused.
    """
    requests = ApprovalRequest.objects.filter(
        memory_edit__agent_id=agent_id,
        memory_edit__path=path,
        memory_edit__person=person_at(path, person_id),
        status=ApprovalStatus.DECIDED,
        decision__in=(Decision.APPROVE, Decision.EDIT),
    )
    return {base + 1: key for base, key in requests.values_list("memory_edit__base_revision", "id")}


def revision_content(
    agent_id: str, path: str, number: int, person_id: int | None = None
) -> str | None:
    """Return the content of the file at a revision, None if that revision deleted the file.

    Raises `memory.paths.InvalidPath`, `memory.errors.NoSuchFile`, and `memory.errors.Purged`.
    """
    check_path(path)
    if (folder := folder_of(path)) is not None:
        found = folder.content(agent_id, path, number)
        if found is None:
            raise NoSuchFile(f"{path} has no revision {number}.")
        return found[0]
    revisions = revisions_at(agent_id, path, person_id).filter(number=number)
    revision = revisions.values_list("content", "purged_at").first()
    if revision is None:
        raise NoSuchFile(f"{path} has no revision {number}.")
    content, purged_at = revision
    if purged_at is not None:
        raise Purged(f"The content of {path} at revision {number} was purged.")
    return content


def file_state(agent_id: str, path: str, person_id: int | None = None) -> FileState:
    """Return the current state of a file of `knowledge` or `me`, and "no file" for other paths.

    The caller has checked `path`. For other files use `memory_state`. Raises `InvalidPath` for a
    path below `me/` without `person_id`.
    """
    latest = (
        revisions_at(agent_id, path, person_id)
        .order_by("-number")
        .values_list("content", "number")
        .first()
    )
    return FileState(*latest) if latest else FileState(None, 0)


def memory_bytes(agent_id: str, person_id: int | None = None, *, without: str = "") -> int:
    """Return the total size of an agent's knowledge files, or of a person's `me/`, in bytes.

    The file at `without` does not count.
    """
    files = files_of(agent_id, person_id).exclude(path=without)
    return files.aggregate(total=Sum("size_bytes"))["total"] or 0
