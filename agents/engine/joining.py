"""Messages that join a run: they waited in its thread, and its next model call contains them.

Until then, a waiting run contains the message, and starts if this run ends first.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import QuerySet

from agents.engine.crash_points import CrashPoint, reached
from agents.engine.prompt.conversation import with_pictures
from agents.engine.session import Session
from agents.engine.storage.journal import Writer
from agents.engine.storage.notes import insert_note
from agents.events.append import append_events
from agents.events.catalogue.messages import MessageJoined
from agents.kernel.lease import held_clock
from agents.kernel.middleware import Join
from agents.models import Message, MessageRole, Run, Upload
from agents.models.message import PERSON, UPLOADS
from agents.providers.base import Role
from agents.services.runs.control import end_joined
from agents.services.runs.wake import lock_with_parent
from agents.states import RunStatus


async def join_messages(session: Session, join: Join) -> None:
    """Add messages that wait in the thread to the run, at a place between two turns.

    Raises `FenceLost` and `Stopped`.
    """
    if session.turn == 0:
        raise RuntimeError("A message can only join a run after its first reply.")
    for row in await session.database.run(_with_files, session.writer, join.runs):
        await session.read_uploads(row)
    contents = await session.database.run(_write, session.writer, session.turn, join)
    reached(CrashPoint.JOINED)
    said: list[tuple[Role, str]] = [("user", content) for content in contents]
    with session.handle.interruptible():  # this may send a request to a model server
        sent = await with_pictures(
            session.database, session.provider, session.run, session.head.model, said
        )
    for (role, content), (_, with_bytes) in zip(said, sent, strict=True):
        session.say(role, content, with_bytes)


def _waiting(writer: Writer, ids: Sequence[str]) -> QuerySet[Run]:
    """Return those of the runs that still wait, in the order of their messages."""
    rows = Run.objects.filter(pk__in=ids, thread=writer.thread_id, parent=None)
    return rows.filter(status=RunStatus.PENDING).order_by("number")


def _with_files(writer: Writer, ids: Sequence[str]) -> list[Run]:
    rows = _waiting(writer, ids).filter(has_uploads=True)
    return list(rows.select_related("agent_version", "thread"))


def _write(writer: Writer, turn: int, join: Join) -> list[str]:
    """Store the messages in the run and end the waiting runs. Return the stored JSON texts.

    Invariant 1: one transaction with a check of the fencing token. A run that is to be cancelled
    gets no message.
    """
    lock_with_parent(writer.run_id, writer.parent_id)
    waiting = list(_waiting(writer, join.runs).select_for_update(no_key=True))
    clock = held_clock(writer)
    contents: list[str] = []
    for row in [] if clock.cancel_requested else waiting:
        message = Message.objects.get(run=row, turn=0, role=MessageRole.USER)
        parts = {PERSON: message.content}
        if row.attachments:
            parts[UPLOADS] = row.attachments
        for author, content in parts.items():
            insert_note(writer, turn, content, author)
        files = Upload.objects.filter(run=row).order_by("pk") if row.has_uploads else ()
        joined = MessageJoined(
            step=turn,
            waiting_run_id=row.pk,
            by=join.by,
            text=message.text,
            files=[upload.path for upload in files],
        )
        append_events(writer.run_id, [joined])
        end_joined(row, writer.run_id, by=join.by)
        contents += parts.values()
    join.settle()
    return contents
