"""Edits of an agent's memory: previews of their results, and their execution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from django.db import transaction

from agents.models import Agent, ApprovalRequest
from agents.services.audit import record
from agents.services.errors import Conflict, InvalidRequest, NotFound, ServiceError
from memory.actions.files import check_content, check_places, store_change
from memory.edits import EditOperation, MemoryEdit, content_after, size_warnings
from memory.errors import Changed, MemoryRefused, NoSuchFile
from memory.folders import Change, MemoryFolder, folder_of
from memory.limits import size_of
from memory.models import MemoryEditRequest, Operation
from memory.paths import InvalidPath, check_writable
from memory.queries.provenance import untrusted_sources
from memory.queries.state import memory_bytes
from memory.queries.tree import memory_state


@dataclass(frozen=True, slots=True)
class Proposal:
    """An edit with the content before it (None: no file) and after it (None: deleted)."""

    edit: MemoryEdit
    before: str | None
    base_revision: int
    after: str | None
    warnings: list[str]


def propose_edit(agent_id: str, edit: MemoryEdit) -> Proposal:
    """Return the result that `edit` would have on the current memory.

    Raises `InvalidRequest` if the edit is invalid or would change nothing.
    """
    try:
        path = check_writable(edit.path)
        state = memory_state(agent_id, path)
        after = content_after(edit, state.content)
    except (InvalidPath, MemoryRefused) as problem:
        raise InvalidRequest(str(problem)) from None
    if after is not None:
        check_edited_content(agent_id, path, after)
        if after == state.content:
            raise InvalidRequest(f"{path} is like this already: nothing would change.")
    total = memory_bytes(agent_id, without=path) + (size_of(after) if after is not None else 0)
    return Proposal(edit, state.content, state.revision, after, size_warnings(total))


def check_edited_content(agent_id: str, path: str, content: str) -> None:
    """Raise `InvalidRequest` if the file at `path` may not have this content."""
    check_edited_contents(agent_id, {path: content})


def check_edited_contents(agent_id: str, contents: Mapping[str, str]) -> None:
    """Raise `InvalidRequest` if the files at these paths may not have these contents together."""
    own: list[str] = []
    try:
        for path, content in contents.items():
            check_content(content)
            folder = _folder_of(path)
            if folder is not None:
                folder.check(path, content)
            else:
                own.append(path)
        check_places(agent_id, own)
    except MemoryRefused as problem:
        raise InvalidRequest(str(problem)) from None


def record_proposal(request: ApprovalRequest, turn: int, proposal: Proposal) -> MemoryEditRequest:
    """Store the edit that a request for approval proposes."""
    edit, run = proposal.edit, request.run
    return MemoryEditRequest.objects.create(
        agent_id=run.agent_version.agent_id,
        run_id=run.pk,
        approval=request,
        path=edit.path,
        operation=edit.operation,
        previous_content=proposal.before,
        base_revision=proposal.base_revision,
        proposed_content=proposal.after,
        reason=edit.reason,
        provenance={"step": turn, "sources": untrusted_sources(run)},
        warnings=proposal.warnings,
        asked={
            "content": edit.content,
            "old_text": edit.old_text,
            "replace_all": edit.replace_all,
        },
    )


def asked_edit(request: MemoryEditRequest) -> MemoryEdit:
    """Return the edit as the model requested it, independent of the current file."""
    return MemoryEdit(
        path=request.path,
        operation=cast(EditOperation, request.operation),
        reason=request.reason,
        **request.asked,
    )


def is_current(request: MemoryEditRequest) -> bool:
    """Return whether the file is still at the revision that the request shows."""
    return memory_state(request.agent_id, request.path).revision == request.base_revision


def apply_edit(request: MemoryEditRequest, content: str | None, *, by_id: int) -> int:
    """Make an approved edit the file's next revision and return its number.

    `content` is the approved content, edited or not. Raises `Conflict` (code `stale`) if the file
    has changed, and `InvalidRequest` if the content is invalid.
    """
    return change_memory(
        request.agent_id,
        Change(
            path=request.path,
            operation=Operation(request.operation),
            content=content,
            base_revision=request.base_revision,
            source="approval",
            by_id=by_id,
            reason=request.reason,
            edit_request=request,
        ),
    )


@transaction.atomic
def change_memory(agent_id: str, change: Change) -> int:
    """Store `change` as the next revision of a file and return its number.

    All doors use it. The caller has checked the person's permission. Raises `InvalidRequest` and
    `Conflict` (code `stale`).
    """
    try:
        check_writable(change.path)
        revision = _stored(agent_id, change)
    except (InvalidPath, MemoryRefused) as problem:
        raise _as_service_error(problem) from None
    agent = Agent.objects.get(pk=agent_id)
    # The revisions keep the contents. The audit entry records the person and the door.
    record(
        "memory.changed",
        agent,
        name=f"{change.path} of {agent.slug}",
        by=change.by_id,
        changes={
            "operation": (None, change.operation),
            "revision": (change.base_revision, revision),
        },
        note=change.reason,
    )
    return revision


def _stored(agent_id: str, change: Change) -> int:
    folder = _folder_of(change.path)
    return store_change(agent_id, change) if folder is None else folder.store(agent_id, change)


def _folder_of(path: str) -> MemoryFolder | None:
    """Return the feature's folder that contains the file; None below knowledge/.

    Raises `MemoryRefused` if no installed feature has the folder.
    """
    folder = folder_of(path)
    if folder is None and not path.startswith("knowledge/"):
        raise MemoryRefused(
            f"{path}: no installed feature has this folder. Use a path below knowledge/."
        )
    return folder


def _as_service_error(problem: Exception) -> ServiceError:
    if isinstance(problem, Changed):
        return Conflict(str(problem), code="stale")
    if isinstance(problem, NoSuchFile):
        return NotFound(str(problem))
    return InvalidRequest(str(problem))
