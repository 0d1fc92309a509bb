"""What a person's forks may copy: a click is not to cost the disk a gigabyte each time."""

from __future__ import annotations

from django.contrib.auth import get_user_model
from django.db.models import Sum

from agents.features.forks.settings import ForkSettings
from agents.models import Thread
from agents.services.errors import Conflict


def check_room_for_fork(owner_id: int) -> None:
    """Raise `Conflict` for a person whose forks have copied all that they may.

    Before anything is copied; `count_copied` is what decides.
    """
    limit = ForkSettings.now().FORK_BYTES
    if limit and _copied_by(owner_id) >= limit:
        raise _too_much()


def count_copied(thread: Thread, size: int) -> None:
    """Note that the fork has copied `size` bytes. Raises `Conflict` where they are too many.

    In the transaction that makes the fork; forks of one person come here one after the other.
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
