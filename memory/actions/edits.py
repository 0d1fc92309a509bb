"""Edits of an agent's memory: previews of their results, and their execution.

The transaction that stores the decision on an edit also makes the edit. Therefore, the file cannot
change, the worker cannot stop, and nobody can cancel the run between the two.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from django.db import IntegrityError, transaction
from django.utils import timezone

from agents.events.append import EventDraft, dump
from agents.events.catalogue.tool_calls import ToolCompleted
from agents.events.preview import preview
from agents.models import Agent, ApprovalRequest, ToolCall
from agents.services.audit import record
from agents.services.errors import Conflict, InvalidRequest, NotFound, ServiceError
from agents.states import (
    TOOL_CALL_TRANSITIONS,
    Decision,
    ToolCallStatus,
    check_transition,
)
from memory.edits import EditOperation, MemoryEdit, always_warnings, content_after, size_warnings
from memory.errors import Changed, InvalidEdit, MemoryRefused, NameRefused, NoSuchFile
from memory.events import MemoryChanged
from memory.folders import Change, MemoryFolder, folder_of
from memory.limits import MAX_FILE_BYTES, MAX_FILES, size_of
from memory.models import MemoryEditRequest, MemoryFile, MemoryRevision, Operation
from memory.paths import (
    PERSONAL,
    InvalidPath,
    check_writable,
    content_type_of,
    is_personal,
    person_at,
    shown_path,
)
from memory.queries.files import file_state, memory_bytes, memory_state
from memory.queries.provenance import untrusted_sources
from memory.queries.rows import file_at, files_of


@dataclass(frozen=True, slots=True)
class Proposal:
    """An edit, and the content of the file before it (None: no file) and after it (None: deleted).

    `base_revision` is the number of the file's latest revision; 0 if there never was a file.
    `warnings` are sentences for the approver. `person_id` is the owner of a file of `me/`, and None
    for a file of the agent.
    """

    edit: MemoryEdit
    before: str | None
    base_revision: int
    after: str | None
    warnings: list[str]
    person_id: int | None = None


def propose_edit(agent_id: str, edit: MemoryEdit, person_id: int | None = None) -> Proposal:
    """Return the result that `edit` would have on the current memory, without storing it.

    `person_id` is the person whose `me/` the edit may change. Raises `InvalidRequest` if the edit
    is invalid or would change nothing.
    """
    try:
        path = check_writable(edit.path)
        owner_id = person_at(path, person_id)
        state = memory_state(agent_id, path, owner_id)
        after = content_after(edit, state.content)
    except (InvalidPath, MemoryRefused) as problem:
        raise InvalidRequest(str(problem)) from None
    if after is not None:
        check_edited_content(agent_id, path, after, owner_id)
        if after == state.content:
            raise InvalidRequest(f"{path} already has this content: nothing would change.")
    others = memory_bytes(agent_id, owner_id, without=path)
    total = others + (size_of(after) if after is not None else 0)
    warnings = [*always_warnings(path, after), *size_warnings(total)]
    return Proposal(edit, state.content, state.revision, after, warnings, owner_id)


def check_edited_content(
    agent_id: str, path: str, content: str, person_id: int | None = None
) -> None:
    """Raise `InvalidRequest` if the file at `path` may not have this content."""
    check_edited_contents(agent_id, {path: content}, person_id)


def check_edited_contents(
    agent_id: str, contents: Mapping[str, str], person_id: int | None = None
) -> None:
    """Raise `InvalidRequest` if a content is invalid, or the memory has no place for these files.

    `contents` maps paths to contents. The caller has checked the paths with `check_path` or
    `check_writable`. With `person_id`, the files belong to this person's `me/`.
    """
    own: list[str] = []
    try:
        for path, content in contents.items():
            check_content(content)
            folder = _folder_of(path)
            if folder is not None:
                folder.check(agent_id, path, content)
            else:
                own.append(path)
        check_places(agent_id, own, person_id)
    except MemoryRefused as problem:
        raise _as_service_error(problem) from None


def record_proposal(request: ApprovalRequest, turn: int, proposal: Proposal) -> MemoryEditRequest:
    """Store the proposed edit as the content of an approval request."""
    edit, run = proposal.edit, request.run
    return MemoryEditRequest.every.create(
        agent_id=run.agent_version.agent_id,
        person_id=proposal.person_id,
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
    state = memory_state(request.agent_id, request.path, request.person_id)
    return state.revision == request.base_revision


def apply_edit(request: MemoryEditRequest, content: str | None, *, by_id: int) -> int:
    """Make an approved edit the file's next revision and return its number.

    `content` is the approved content, which the approver may have changed; None deletes the file.
    Raises the errors of `change_memory`, such as `Conflict` (code `stale`) if the file has changed.
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
            person_id=request.person_id,
        ),
    )


@transaction.atomic
def change_memory(agent_id: str, change: Change) -> int:
    """Store `change` as the next revision of a file and return its number.

    Every change of a memory uses this function. The caller checks the person's permission
    beforehand.

    Raises:
        InvalidRequest: The path or the content is invalid, or there is no place for the file.
        Conflict: The file is not at `change.base_revision` (code `stale`).
        NotFound: The folder of another feature has no such file.
    """
    try:
        check_writable(change.path)
        revision = _stored(agent_id, change)
    except (InvalidPath, MemoryRefused) as problem:
        raise _as_service_error(problem) from None
    agent = Agent.objects.get(pk=agent_id)
    # The revisions store the contents. The audit entry records the person and where the change came
    # from, but not the path of a person's own file, because others read the audit log.
    personal = is_personal(change.path)
    record(
        "memory.changed",
        agent,
        name=f"{shown_path(change.path)} of {agent.slug}",
        by=change.by_id,
        changes={
            "operation": (None, change.operation),
            "revision": (change.base_revision, revision),
        },
        note="" if personal else change.reason,
    )
    return revision


def _stored(agent_id: str, change: Change) -> int:
    folder = _folder_of(change.path)
    return store_change(agent_id, change) if folder is None else folder.store(agent_id, change)


def _folder_of(path: str) -> MemoryFolder | None:
    """Return the folder of another feature that contains the file; None below knowledge/ and me/.

    Raises `MemoryRefused` if no installed feature provides the folder.
    """
    folder = folder_of(path)
    if folder is None and not path.startswith(("knowledge/", f"{PERSONAL}/")):
        raise MemoryRefused(
            f"{path}: no installed feature has this folder. Use a path below knowledge/."
        )
    return folder


def _as_service_error(problem: Exception) -> ServiceError:
    if isinstance(problem, Changed):
        return Conflict(str(problem), code="stale")
    if isinstance(problem, NoSuchFile):
        return NotFound(str(problem))
    # Not a `Conflict`: clients understand that as "the file has changed since you saw it".
    code = problem.code if isinstance(problem, NameRefused) else ""
    return InvalidRequest(str(problem), code=code)


def carry_out_edit(request: ApprovalRequest, call: ToolCall | None, by_id: int) -> list[EventDraft]:
    """Make an approved edit, and store the result of its tool call if the run waits for it.

    Returns the events to append. The caller has locked the run and the request.
    """
    edit = request.memory_edit
    content = edit.proposed_content
    changed = request.decision == Decision.EDIT
    if changed:
        content = edited_content(edit, request.edited_input)
    revision = apply_edit(edit, content, by_id=by_id)
    stored = MemoryChanged(
        path=shown_path(edit.path),
        operation=edit.operation,
        revision=revision,
        approval_id=request.id,
    )
    if call is None:
        return [stored]
    check_transition(TOOL_CALL_TRANSITIONS, call.status, ToolCallStatus.SUCCEEDED)
    call.status = ToolCallStatus.SUCCEEDED
    call.is_error = False
    call.code = ""
    text = _told(edit, revision, content if changed else None)
    call.result = dump(text)
    call.started_at = call.finished_at = timezone.now()
    call.save()
    return [stored, ToolCompleted(call_id=call.call_id, output=preview(text))]


def edited_content(edit: MemoryEditRequest, arguments: Any) -> str:
    """Return the whole content that an approver entered instead of the proposed one.

    Raises `InvalidRequest` unless `arguments` is `{"content": TEXT}` with a valid content.
    """
    content = (
        arguments.get("content") if isinstance(arguments, dict) and len(arguments) == 1 else None
    )
    if not isinstance(content, str):
        raise InvalidRequest('An edit of the memory needs the input {"content": "the whole file"}.')
    check_edited_content(edit.agent_id, edit.path, content, edit.person_id)
    return content


def _told(edit: MemoryEditRequest, revision: int, edited: str | None) -> str:
    """Return the text that the model receives as the result of its call."""
    if edit.operation == "delete":
        return f"A person approved it: {edit.path} is deleted."
    if edited is None:
        return f"A person approved it: {edit.path} is saved (revision {revision})."
    if edit.person_id is not None:
        return (
            f"The person changed the content and saved {edit.path} (revision {revision}): "
            "read_memory shows it."
        )
    return (
        f"A person changed the content and saved {edit.path} (revision {revision}). "
        f"It is now:\n\n{preview(edited)}"
    )


def check_content(content: str) -> None:
    """Raise `InvalidEdit` if no memory file may have this content."""
    if "\x00" in content:
        raise InvalidEdit("The content contains a NUL character: remove it.")
    try:
        size = size_of(content)
    except UnicodeEncodeError:
        raise InvalidEdit("The content contains half a character (a lone surrogate).") from None
    if size > MAX_FILE_BYTES:
        raise InvalidEdit(
            f"The content has {size:,} bytes and a file of the memory may have "
            f"{MAX_FILE_BYTES:,}: shorten it, or split it into several files."
        )


def check_places(agent_id: str, paths: Iterable[str], person_id: int | None = None) -> None:
    """Raise `InvalidEdit` if the memory has no place for new files at `paths`.

    The memory may be full, or a name may differ from another only in case, or a path may be a file
    and a directory at the same time. With `person_id`, the paths are in this person's `me/`.
    """
    taken = dict.fromkeys(files_of(agent_id, person_id).values_list("path", flat=True))
    for path in paths:
        _check_place(path, taken)
        taken[path] = None


def _check_place(path: str, taken: Collection[str]) -> None:
    if path in taken:
        return
    if len(taken) >= MAX_FILES:
        raise InvalidEdit(
            f"The memory has no room for {path}, since it may have {MAX_FILES:,} files: add to one "
            "of them."
        )
    folded = path.lower()
    for other in taken:
        lower = other.lower()
        if lower == folded:
            raise InvalidEdit(f"{other} already exists: names must differ in more than their case.")
        if lower.startswith(f"{folded}/"):
            raise InvalidEdit(f"{path} is a directory: it contains {other}.")
        if folded.startswith(f"{lower}/"):
            raise InvalidEdit(f"{other} is a file, not a directory.")


@transaction.atomic
def store_change(agent_id: str, change: Change) -> int:
    """Make `change` the next revision of a file of the memory itself, and return its number.

    The caller has checked that the path is valid. An error leaves no partial change.

    Raises:
        InvalidEdit: The content is invalid, there is no place for the path, or there is no file to
            delete.
        Changed: The file is not at `change.base_revision`, also after a concurrent change.
        InvalidPath: The file is in `me/` and `change.person_id` is None.
    """
    person_id = person_at(change.path, change.person_id)
    if change.content is not None:
        check_content(change.content)
        check_places(agent_id, [change.path], person_id)
    state = file_state(agent_id, change.path, person_id)
    if state.revision != change.base_revision:
        raise Changed(f"{change.path} has changed. Reload it and try again.")
    if change.content is None and state.content is None:
        raise InvalidEdit(f"There is no {change.path} to delete.")
    size = size_of(change.content) if change.content is not None else 0
    number = state.revision + 1
    try:
        with transaction.atomic():
            MemoryRevision.every.create(
                agent_id=agent_id,
                person_id=person_id,
                path=change.path,
                number=number,
                operation=change.operation,
                content=change.content,
                sha256=sha256_of(change.content) if change.content is not None else "",
                size_bytes=size,
                reason=change.reason,
                source=change.source,
                edit_request=change.edit_request,
                created_by_id=change.by_id,
            )
    except IntegrityError:
        raise Changed(f"{change.path} has just changed. Reload it and try again.") from None
    if change.content is None:
        file_at(agent_id, change.path, person_id).delete()
    else:
        MemoryFile.every.update_or_create(
            agent_id=agent_id,
            person_id=person_id,
            path=change.path,
            defaults={
                "content": change.content,
                "content_type": content_type_of(change.path),
                "size_bytes": size,
                "revision": number,
            },
        )
    return number


def sha256_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
