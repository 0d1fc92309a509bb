"""Conversations that contain texts of a memory file: in their prompts, calls and requests."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q, TextField
from django.db.models.functions import Cast

from agents.models import Epoch, Thread, ToolCall
from memory.models import MemoryEditRequest
from memory.paths import ALWAYS, PERSONAL_ALWAYS

_BY_PATH = ("read_memory", "write_memory", "read_file", "write_file", "edit_file")
"""Tools whose input names the file."""
_BY_RESULT = ("grep",)
"""Tools whose result names the files that it quotes."""


def conversations_with(
    agent_id: str, path: str, person_id: int | None, since: datetime, until: datetime | None
) -> list[str]:
    """Return the ids of threads that got a text which the file had between two moments.

    These are the threads whose prompts contain it or its description, whose calls read or write it,
    and whose runs have proposed a change of it. `person_id` is the owner of a file of `me/`: only
    the conversations of this person contain it. `until` None: the file is deleted.
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
    """Return a filter of prompts with the file: as `memory.middleware` writes them."""
    if path in (ALWAYS, PERSONAL_ALWAYS):
        whole = Q(text__contains=f"{path} is loaded in each conversation")
        return whole | Q(text__contains=f"{path} (its beginning")
    return Q(text__contains=f"- {path}: ")
