"""Erase the history of a memory file: nobody can read or restore earlier contents from it.

Conversations that contain earlier contents keep them: see `Purge.threads`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast
from django.utils import timezone

from agents.models import Agent, ApprovalRequest, Epoch, Thread, ToolCall
from agents.services.audit import record
from agents.services.erasure.actions import empty_log, overwrite_deleted_bytes
from agents.services.errors import InvalidRequest, NotFound
from agents.states import ApprovalStatus
from memory.actions.changes import check_may_change
from memory.folders import folder_of
from memory.models import MemoryEditRequest, MemoryRevision
from memory.paths import (
    ALWAYS,
    PERSONAL_ALWAYS,
    InvalidPath,
    check_writable,
    person_at,
    shown_path,
)
from memory.queries.rights import reader_of
from memory.queries.rows import file_at, revisions_at

_BY_PATH = ("read_memory", "write_memory", "read_file", "write_file", "edit_file")
"""Tools whose input names the file."""
_BY_RESULT = ("grep",)
"""Tools whose result names the files that it quotes."""


@dataclass(frozen=True, slots=True)
class Purge:
    """The numbers of revisions and of edit requests whose texts a purge erases.

    The edit requests are those that are decided or were saved without asking.

    `threads` are the ids of conversations that also contain the texts, in their prompts, calls and
    requests. A purge does not change them: their prompts must stay the same, and people may need
    them. Erasing a conversation erases its texts.
    """

    revisions: int
    requests: int
    threads: list[str]


def plan_purge(agent: Agent, path: str, person_id: int | None = None) -> Purge:
    """Return what `purge_history` would erase now, without erasing it.

    Args:
        person_id: The owner if `path` is below `me/`.

    Raises:
        InvalidRequest: The path is invalid, or belongs to a skill: runs keep the versions of a
            skill that they used.
        NotFound: The file has no history.
    """
    try:
        person_at(check_writable(path), person_id)
    except InvalidPath as problem:
        raise InvalidRequest(str(problem)) from None
    if folder_of(path) is not None:
        raise InvalidRequest(
            f"The history of {path} cannot be purged: runs that used the skill keep its versions."
        )
    if not revisions_at(agent.pk, path, person_id).exists():
        raise NotFound(f"There is no history of {path!r}.", code="unknown_file")
    requests = _requests(agent, path, person_id)
    owner_id = person_at(path, person_id)
    since = revisions_at(agent.pk, path, person_id).earliest("number").created_at
    until = _current_since(agent, path, person_id)
    threads = _conversations_with(agent.pk, path, owner_id, since, until)
    return Purge(_revisions(agent, path, person_id).count(), requests.count(), threads)


@transaction.atomic
def purge_history(agent: Agent, path: str, *, by: AbstractBaseUser, source: str) -> Purge:
    """Erase the contents and reasons of all revisions of a file except the current one.

    If the file is deleted, all its revisions are purged. The numbers, times and people of the
    revisions stay, and so does the current file. Decided edit requests lose their texts, too;
    pending requests keep them. The audit log records the person and the file.

    Raises:
        NotAllowed: `by` may not change the file.
        InvalidRequest: As for `plan_purge`.
        NotFound: The file has no history.
    """
    check_may_change(agent, by, path)
    person_id = reader_of(by, path)
    # Two concurrent changes of a file cannot both succeed, because each creates the revision with
    # the next number. A purge does not touch the latest revision if it is the current file.
    list(revisions_at(agent.pk, path, person_id).select_for_update().values("pk"))
    found = plan_purge(agent, path, person_id)
    overwrite_deleted_bytes()
    now = timezone.now()
    _revisions(agent, path, person_id).update(
        content=None, sha256="", size_bytes=0, reason="", purged_at=now
    )
    # The approval requests contain the same texts.
    decided = list(_requests(agent, path, person_id).values_list("approval", flat=True))
    ApprovalRequest.objects.filter(pk__in=decided).update(
        input={}, edited_input=None, reason="", prompt=""
    )
    _requests(agent, path, person_id).update(
        previous_content=None,
        proposed_content=None,
        asked={},
        reason="",
        provenance={},
        warnings=[],
        purged_at=now,
    )
    record(
        "memory.purged",
        agent,
        name=f"{shown_path(path)} of {agent.slug}",
        by=by,
        changes={"revisions": (found.revisions, 0), "requests": (found.requests, 0)},
        note=f"through {source}",
    )
    transaction.on_commit(empty_log)
    return found


def _current_since(agent: Agent, path: str, person_id: int | None) -> datetime | None:
    """Return when the current file got its content; None if it is deleted."""
    files = file_at(agent.pk, path, person_id)
    return files.values_list("updated_at", flat=True).first()


def _revisions(agent: Agent, path: str, person_id: int | None) -> QuerySet[MemoryRevision]:
    """Return the revisions to purge: all but that of the current file."""
    revisions = revisions_at(agent.pk, path, person_id).filter(purged_at=None)
    current = file_at(agent.pk, path, person_id).values_list("revision", flat=True)
    return revisions.exclude(number__in=list(current))


def _requests(agent: Agent, path: str, person_id: int | None) -> QuerySet[MemoryEditRequest]:
    decided = ~Q(approval__status=ApprovalStatus.PENDING) | Q(approval=None)
    return MemoryEditRequest.every.filter(
        decided, agent=agent, person_id=person_at(path, person_id), path=path, purged_at=None
    )


def _conversations_with(
    agent_id: str, path: str, person_id: int | None, since: datetime, until: datetime | None
) -> list[str]:
    """Return the ids of threads that contain a text of the file between two moments.

    A thread counts if a prompt contains the text or its description, if a call reads or writes the
    file, or if a run proposed a change of it. Only the owner's conversations contain a file of
    `me/`: `person_id` is the owner. `until` is None if the file is deleted.
    """
    epochs = Epoch.objects.annotate(text=Cast("head", TextField())).filter(
        _in_prompt(path), agent_version__agent=agent_id, created_at__gte=since
    )
    called = Q(tool__in=_BY_PATH, input__contains=path)
    quoted = Q(tool__in=_BY_RESULT, result__contains=path)
    calls = ToolCall.objects.filter(called | quoted, run__agent_version__agent=agent_id)
    if until is not None:
        epochs = epochs.filter(created_at__lt=until)
        calls = calls.filter(run__created_at__lt=until)
    requests = MemoryEditRequest.every.filter(
        agent=agent_id, person_id=person_id, path=path, run__isnull=False
    )
    threads = Thread.objects.filter(
        Q(pk__in=epochs.values("thread"))
        | Q(pk__in=calls.values("run__thread"))
        | Q(pk__in=requests.values("run__thread"))
    )
    if person_id is not None:
        threads = threads.filter(owner=person_id)
    return sorted(threads.values_list("pk", flat=True))


def _in_prompt(path: str) -> Q:
    """Return a filter for prompts that contain the file's path as `memory.middleware` writes it."""
    if path in (ALWAYS, PERSONAL_ALWAYS):
        whole = Q(text__contains=f"{path} is loaded in each conversation")
        return whole | Q(text__contains=f"{path} (its beginning")
    return Q(text__contains=f"- {path}: ")
