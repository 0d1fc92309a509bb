"""Changes that people make to an agent's memory directly: write, append, delete, restore.

The web pages, the REST API, the CLI and the admin call these functions. The import of a folder
calls `check_may_change`. Edits that an agent proposes use `memory.actions.edits` and an approval
request instead.
"""

from __future__ import annotations

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction

from agents.models import Agent
from agents.services.errors import Conflict, InvalidRequest, NotAllowed, NotFound
from memory.actions.edits import change_memory
from memory.edits import MemoryEdit, content_after
from memory.errors import MemoryRefused, NoSuchFile
from memory.folders import Change, FileState
from memory.models import Operation
from memory.paths import PERSONAL, InvalidPath, check_writable, is_personal
from memory.queries.files import memory_state, revision_content
from memory.queries.rights import may_change_file, reader_of


@transaction.atomic
def write_file(
    agent: Agent,
    path: str,
    content: str,
    *,
    by: AbstractBaseUser,
    base_revision: int | None = None,
    source: str,
    reason: str = "",
) -> int:
    """Create or replace the file at `path`, and return the number of its latest revision.

    Unchanged content creates no new revision.

    Args:
        base_revision: The revision that `by` has seen; 0 if `by` saw no file, also if it was
            deleted. None skips the check.
        source: Where the change came from, as in `memory.folders.Change`.

    Raises:
        NotAllowed: `by` may not change the file.
        InvalidRequest: The path or the content is invalid.
        Conflict: The file has changed since `base_revision` (code `stale`).
    """
    state = _current(agent, path, by, base_revision)
    if content == state.content:
        return state.revision
    change = Change(
        path,
        Operation.WRITE,
        content,
        state.revision,
        source,
        by_id=by.pk,
        reason=reason,
        person_id=reader_of(by, path),
    )
    return change_memory(agent.pk, change)


@transaction.atomic
def append_to_file(
    agent: Agent, path: str, content: str, *, by: AbstractBaseUser, source: str, reason: str = ""
) -> int:
    """Add `content` to the end of the file, on a new line, and return the new revision.

    Creates the file if it does not exist. Raises the same errors as `write_file`.
    """
    state = _current(agent, path, by, None)
    try:
        after = content_after(MemoryEdit(path, "append", content), state.content)
    except MemoryRefused as problem:
        raise InvalidRequest(str(problem)) from None
    if after == state.content:
        raise InvalidRequest("The content to append is empty.")
    change = Change(
        path,
        Operation.APPEND,
        after,
        state.revision,
        source,
        by_id=by.pk,
        reason=reason,
        person_id=reader_of(by, path),
    )
    return change_memory(agent.pk, change)


@transaction.atomic
def delete_file(
    agent: Agent,
    path: str,
    *,
    by: AbstractBaseUser,
    base_revision: int | None = None,
    source: str,
) -> int:
    """Delete the file at `path` and return the revision of the deletion. Its history stays.

    Raises the same errors as `write_file`, and `NotFound` if there is no such file.
    """
    state = _current(agent, path, by, base_revision)
    if state.content is None:
        raise NotFound(f"There is no {path} in the memory.")
    change = Change(
        path,
        Operation.DELETE,
        None,
        state.revision,
        source,
        by_id=by.pk,
        person_id=reader_of(by, path),
    )
    return change_memory(agent.pk, change)


@transaction.atomic
def restore_revision(
    agent: Agent,
    path: str,
    number: int,
    *,
    by: AbstractBaseUser,
    base_revision: int | None = None,
    source: str,
) -> int:
    """Restore the file to revision `number` as a new revision, and return the new number.

    Restoring a deletion deletes the file. Raises the same errors as `write_file`, `NotFound` if
    there is no such revision, and `InvalidRequest` if the file has that content already.
    """
    state = _current(agent, path, by, base_revision)
    try:
        content = revision_content(agent.pk, path, number, by.pk)
    except NoSuchFile as problem:
        raise NotFound(str(problem)) from None
    if content == state.content:
        raise InvalidRequest(f"{path} already has the content of revision {number}.")
    change = Change(
        path,
        Operation.RESTORE,
        content,
        state.revision,
        source,
        by_id=by.pk,
        reason=f"Revision {number} again.",
        person_id=reader_of(by, path),
    )
    return change_memory(agent.pk, change)


def check_may_change(agent: Agent, by: AbstractBaseUser, path: str = "") -> None:
    """Raise `NotAllowed` unless `by` may change the memory of `agent`, or the file at `path`."""
    if is_personal(path) and not may_change_file(by, agent, path):
        raise NotAllowed(f"Only people who may use {agent.name} have a {PERSONAL}/ there.")
    if not may_change_file(by, agent, path):
        raise NotAllowed(
            f"Only the owner of {agent.name}, and people with the permission to approve, can "
            "change its memory."
        )


def _current(agent: Agent, path: str, by: AbstractBaseUser, base_revision: int | None) -> FileState:
    """Return the current state of the file, after checking that `by` may change it.

    Raises `NotAllowed`, and `Conflict` (code `stale`) if the file is not at `base_revision`.
    """
    check_may_change(agent, by, path)
    try:
        state = memory_state(agent.pk, check_writable(path), by.pk)
    except InvalidPath as problem:
        raise InvalidRequest(str(problem)) from None
    saw_no_file = base_revision == 0 and state.content is None
    if base_revision is not None and base_revision != state.revision and not saw_no_file:
        raise Conflict(f"{path} has changed. Reload it and try again.", code="stale")
    return state
