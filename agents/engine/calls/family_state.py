"""What the runs of a family have in common, as it is now: an approval is bound to it.

Invariant 4: what was approved is what happens. The workspace generation counts a thread's own
writes; the files that a subagent shares with its parent are changed by others, too.
"""

from __future__ import annotations

import asyncio

from django.db.models import Count, Max, Sum
from django.db.models.functions import Length

from agents.engine.session import Session
from agents.models import StateFile, Thread
from sandbox.directories.fingerprint import fingerprint
from sandbox.errors import SandboxError
from sandbox.paths import FAMILY_AREAS


async def family_state(session: Session) -> str:
    """A text that changes when shared files do; empty for a run that shares none."""
    found = await session.database.run(_generations, session.writer.thread_id)
    if not found:
        return ""
    location = session.files.location
    if not session.spec.sandbox:
        return await session.database.run(_rows, location.family or location.thread_id)
    if location.own_directory is not None:
        # The caller's own directory is everybody's workspace, and may be large: who has written
        # counts, not what.
        return found
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(session.threads, _shared, session)


def _generations(thread_id: str) -> str:
    """Those of all threads of the family; empty where there is no family."""
    thread = Thread.objects.only("pk", "root_id").get(pk=thread_id)
    root = thread.root_id or thread.pk
    members = Thread.objects.filter(root_id=root).order_by("pk")
    counted = list(members.values_list("pk", "workspace_generation"))
    if not counted:
        return ""
    first = Thread.objects.values_list("workspace_generation", flat=True).get(pk=root)
    return repr([first, counted])


def _rows(thread_id: str) -> str:
    rows = StateFile.objects.filter(thread_id=thread_id)
    return repr(rows.aggregate(Count("pk"), Max("updated_at"), size=Sum(Length("content"))))


def _shared(session: Session) -> str:
    try:
        directories = session.files.workspace().directories
    except SandboxError:
        return "no workspace"  # which the call itself will tell
    return fingerprint(directories[area] for area in FAMILY_AREAS)
