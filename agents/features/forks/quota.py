"""Quota of bytes that a person's forks may copy, since each fork can copy a gigabyte."""

from __future__ import annotations

from django.contrib.auth import get_user_model
from django.db.models import Sum

from agents.features.forks.settings import ForkSettings
from agents.models import Thread
from agents.services.errors import Conflict


def check_room_for_fork(owner_id: int) -> None:
    """Raise `Conflict` if a person's forks have used their quota of copied bytes.

    An early check before files are copied; `count_copied` decides.
    """
    limit = ForkSettings.now().FORK_BYTES
    if limit and _copied_by(owner_id) >= limit:
        raise _too_much()


def count_copied(thread: Thread, size: int) -> None:
    """Record that the fork has copied `size` bytes. Raises `Conflict` if they exceed the quota.

    In the transaction of the fork; it locks the user, so forks of a person are counted in turn.
    """
    limit = ForkSettings.now().FORK_BYTES
    get_user_model().objects.select_for_update(no_key=True).get(pk=thread.owner_id)
    if limit and _copied_by(thread.owner_id) + size > limit:
        raise _too_much()
    Thread.objects.filter(pk=thread.pk).update(copied_bytes=size)


def _copied_by(owner_id: int) -> int:
    forks = Thread.objects.filter(owner=owner_id, copied_bytes__gt=0)
    return forks.aggregate(size=Sum("copied_bytes"))["size"] or 0


def _too_much() -> Conflict:
    limit = ForkSettings.now().FORK_BYTES
    return Conflict(
        f"Your forks may have copied {limit:,} bytes of files in all: say `files`: `none`, or ask "
        "the operator to remove old workspaces (vel workspaces prune).",
        code="fork_quota",
    )
