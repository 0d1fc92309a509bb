"""The shared state of a family of runs. Approvals are bound to it.

Invariant 4: the approved call is the call that runs. The workspace generation counts a thread's own
writes, but other runs can also change the files that a subagent shares with its parent.
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
    """Return a text that changes with the shared files; empty for a run that shares none."""
    found = await session.database.run(_generations, session.writer.thread_id)
    if not found:
        return ""
    location = session.files.location
    if not session.spec.sandbox:
        return await session.database.run(_rows, location.family or location.thread_id)
    if location.own_directory is not None:
        # The caller's own directory is the workspace of all, and may be large: compare the numbers
        # of writes, not the contents.
        return found
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(session.threads, _shared, session)


def _generations(thread_id: str) -> str:
    """Return the generations of all threads of the family, or "" without one."""
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
        return "no workspace"  # the call itself reports it
    return fingerprint(directories[area] for area in FAMILY_AREAS)
