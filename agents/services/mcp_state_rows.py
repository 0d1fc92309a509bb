"""The rows that say which stored state of its MCP programs a thread goes on with."""

from __future__ import annotations

from django.db import transaction

from agents.models import McpState, Thread
from agents.services.thread_files import lie_here
from sandbox.errors import SandboxError


def last_state(thread_id: str) -> str | None:
    """What `store_state` returned for the thread; None when no program has kept anything."""
    return McpState.objects.filter(pk=thread_id).values_list("manifest", flat=True).first()


def record_state(thread_id: str, stored: str) -> None:
    """In the transaction of whoever has the right to say so."""
    McpState.objects.update_or_create(thread_id=thread_id, defaults={"manifest": stored})


class NotOurs(SandboxError):
    """The thread has gone on elsewhere."""


class Erased(SandboxError):
    """The thread is being erased."""


@transaction.atomic
def record_own_state(thread_id: str, stored: str) -> None:
    """As `record_state`, by a host that need not have the right. Raises `NotOurs` and `Erased`."""
    must_be_ours(thread_id)
    record_state(thread_id, stored)


@transaction.atomic
def must_be_ours(thread_id: str) -> None:
    """Keeps the thread on this host until the transaction ends. Raises `NotOurs` and `Erased`."""
    first = Thread.objects.filter(pk=thread_id).values_list("root_id", flat=True).first()
    # A move to another host waits for this row.
    locked = Thread.objects.select_for_update(no_key=True).filter(pk=first or thread_id)
    thread = Thread.objects.select_related("root").filter(pk=thread_id).first()
    if locked.first() is None or thread is None:
        raise Erased(f"The thread {thread_id} is being erased.")
    if not lie_here(thread):
        raise NotOurs(f"The thread {thread_id} is another host's.")


def forget_state(thread_id: str) -> None:
    """There is none any more."""
    McpState.objects.filter(pk=thread_id).delete()
