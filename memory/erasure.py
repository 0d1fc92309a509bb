"""Memory files stay when the thread is erased that they came from: people approved them."""

from __future__ import annotations

from django.db.models import Q

from agents.kernel.erasure import Keeper, Stays
from memory.models import MemoryRevision


def remembered_from(thread_id: str) -> list[Stays]:
    """Return the memory files that this thread or one of its subagents has changed."""
    revisions = MemoryRevision.objects.filter(
        Q(edit_request__run__thread=thread_id) | Q(edit_request__run__thread__root=thread_id)
    )
    found = set(revisions.order_by().values_list("agent__slug", "path"))
    return [Stays(agent, path) for agent, path in sorted(found)]


KEEPERS = [
    Keeper(
        remembered_from,
        sentence="These memory files were changed from here with a person's approval, and are "
        "their agents':",
        line="memory of {agent} that was changed from there stays: {name}",
        page="web:knowledge",
    )
]
