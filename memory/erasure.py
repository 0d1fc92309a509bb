"""Memory files that stay when the thread that changed them is erased: they belong to an agent."""

from __future__ import annotations

from django.db.models import Q

from agents.kernel.erasure import Keeper, Stays
from memory.models import MemoryRevision
from memory.paths import shown_path


def remembered_from(thread_id: str) -> list[Stays]:
    """Return the memory files that this thread or one of its subagents has changed.

    A file of `me/` appears only as its directory, because other people may read the list. Skills
    are not listed.
    """
    revisions = MemoryRevision.every.filter(
        Q(edit_request__run__thread=thread_id) | Q(edit_request__run__thread__root=thread_id)
    )
    rows = revisions.order_by().values_list("agent__slug", "path")
    found = {(agent, shown_path(path)) for agent, path in rows}
    return [Stays(agent, path) for agent, path in sorted(found)]


KEEPERS = [
    Keeper(
        remembered_from,
        sentence="These memory files were changed from here, and belong to their agents:",
        line="memory of {agent} that was changed from there stays: {name}",
        page="web:knowledge",
    )
]
