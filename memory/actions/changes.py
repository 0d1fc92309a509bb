"""What people do to an agent's memory by themselves: write, append, delete, restore.

All doors for people call these, and the import of a folder `check_may_change`. What an agent
asks for goes through `memory_edits` and a decision instead.
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
from memory.paths import InvalidPath, check_writable
from memory.queries.rights import may_change_memory
from memory.queries.tree import memory_state, revision_content


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
    """Make `content` the file at `path`, new or not, and return the revision it is at.

    Content that the file has already makes no new revision. `base_revision` is the one that
    `by` has seen (0: no file); None takes the file as it is. `source` names the door, as in
    `memory.actions.files.Change`. Raises `NotAllowed`, `InvalidRequest`, and `Conflict` (code
    `stale`) when the file has changed.
    """
    state = _current(agent, path, by, base_revision)
    if content == state.content:
        return state.revision
    change = Change(
        path, Operation.WRITE, content, state.revision, source, by_id=by.pk, reason=reason
    )
    return change_memory(agent.pk, change)


@transaction.atomic
def append_to_file(
    agent: Agent, path: str, content: str, *, by: AbstractBaseUser, source: str, reason: str = ""
) -> int:
    """Add `content` at the end of the file, on a line of its own, and return the new revision.

    Makes the file where there is none. Raises as `write_file`.
    """
    state = _current(agent, path, by, None)
    try:
        after = content_after(MemoryEdit(path, "append", content), state.content)
    except MemoryRefused as problem:
        raise InvalidRequest(str(problem)) from None
    if after == state.content:
        raise InvalidRequest("There is nothing to add.")
    change = Change(
        path, Operation.APPEND, after, state.revision, source, by_id=by.pk, reason=reason
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
    """Delete the file at `path` and return the revision that says so. Its history stays.

    Raises as `write_file`, and `NotFound` when there is no such file.
    """
    state = _current(agent, path, by, base_revision)
    if state.content is None:
        raise NotFound(f"There is no {path} in the memory.")
    change = Change(path, Operation.DELETE, None, state.revision, source, by_id=by.pk)
    return change_memory(agent.pk, change)


@transaction.atomic
def restore_revision(
    agent: Agent, path: str, number: int, *, by: AbstractBaseUser, source: str
) -> int:
    """Make the file what it was at revision `number`, as a new revision, and return that.

    Restoring a deletion deletes the file. Raises as `write_file`, `NotFound` when there is no
    such revision, and `InvalidRequest` when the file is like that already.
    """
    state = _current(agent, path, by, None)
    try:
        content = revision_content(agent.pk, path, number)
    except NoSuchFile as problem:
        raise NotFound(str(problem)) from None
    if content == state.content:
        raise InvalidRequest(f"{path} is as it was at revision {number}: nothing would change.")
    change = Change(
        path,
        Operation.RESTORE,
        content,
        state.revision,
        source,
        by_id=by.pk,
        reason=f"Revision {number} again.",
    )
    return change_memory(agent.pk, change)


def check_may_change(agent: Agent, by: AbstractBaseUser) -> None:
    """Raise `NotAllowed` unless `by` may change what `agent` remembers."""
    if not may_change_memory(by, agent):
        raise NotAllowed(
            f"The memory of {agent.name} is changed by its owner, or by people with the "
            "permission to approve."
        )


def _current(agent: Agent, path: str, by: AbstractBaseUser, base_revision: int | None) -> FileState:
    """The file as it is, for somebody who may change it and has seen `base_revision`."""
    check_may_change(agent, by)
    try:
        state = memory_state(agent.pk, check_writable(path))
    except InvalidPath as problem:
        raise InvalidRequest(str(problem)) from None
    if base_revision is not None and base_revision != state.revision:
        raise Conflict(f"{path} has changed since: look at it again.", code="stale")
    return state
