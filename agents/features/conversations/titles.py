"""The titles that models write: which are due, and who writes them.

The rows are authoritative: each is taken by one worker for some time, and again by another one if
that worker dies.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from agents.features.conversations.models import ConversationTitle
from agents.models import Message, MessageRole, Run, Thread
from agents.providers.base import Reply
from agents.services.outside_calls import OutsideCall, release_call, settle_call
from agents.services.threads import first_words

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=120)
"""The time for a worker to write a title, before another worker may."""
PAUSE = timedelta(seconds=60)
"""The time before the second try."""
MAX_TRIES = 2


@dataclass(frozen=True, slots=True)
class TitleTask:
    """A title that this worker writes now."""

    run: Run
    tries: int
    """The fencing token."""
    first_words: str
    """The present title of the thread."""
    until: datetime

    @property
    def is_last_try(self) -> bool:
        return self.tries >= MAX_TRIES


def has_due_title() -> bool:
    return _due().exists()


@transaction.atomic
def take_title() -> TitleTask | None:
    """Take the title that is due for the longest time, or None. Only one worker gets it."""
    while True:
        first = _due().order_by("due_at").first()
        if first is None:
            return None
        until = timezone.now() + LEASE
        # Only with the values that were read: another worker that takes it changes them.
        mine = ConversationTitle.objects.filter(pk=first.pk, tries=first.tries, due_at=first.due_at)
        runs = Run.objects.select_related("thread", "agent_version__agent")
        number = first.run_number or 0  # a title that is due has a run
        run = runs.filter(thread=first.pk, number=number).first()
        if run is None or not _has_first_words(run.thread):
            mine.update(due_at=None)
        elif first.tries >= MAX_TRIES:
            if mine.update(due_at=None):
                logger.warning("the title of thread %s was given up: a worker died", first.pk)
        elif mine.update(tries=first.tries + 1, due_at=until):
            return TitleTask(run, first.tries + 1, run.thread.title, until)


def _has_first_words(thread: Thread) -> bool:
    """Return whether nobody has changed the title.

    Before these rows existed, a new title of a person left no row. During a rolling restart, the
    processes of that version still write none.
    """
    messages = Message.objects.filter(run__thread=thread, turn=0, role=MessageRole.USER)
    opening = messages.order_by("run__number", "position").first()
    return opening is not None and thread.title == first_words(opening.text)


def texts_of(task: TitleTask) -> tuple[str, str]:
    """Return the person's message and the last answer, as people see them."""
    messages = Message.objects.filter(run=task.run, position=0)
    opening = messages.filter(turn=0).first()
    replies = messages.filter(role=MessageRole.ASSISTANT, turn__gt=0).order_by("-turn")
    answer = next((text for reply in replies[:3] if (text := reply.text).strip()), "")
    return (opening.text if opening is not None else "", answer)


@transaction.atomic
def finish_title(task: TitleTask, call: OutsideCall, reply: Reply, title: str) -> bool:
    """Count the call, and store its title unless it is empty or the thread has another one.

    Return whether the title was stored.
    """
    # The thread first, as in `rename_thread`.
    threads = Thread.objects.select_for_update(no_key=True)
    thread = threads.filter(pk=task.run.thread_id).first()
    settle_call(call, reply)
    if not _rows(task).update(due_at=None) or thread is None:
        return False
    if not title or thread.title != task.first_words:
        return False
    thread.title = title
    thread.save(update_fields=["title"])
    return True


@transaction.atomic
def drop_title(task: TitleTask, call: OutsideCall | None, *, again_at: datetime | None) -> None:
    """Record that there is no title. `call` has no reply. `again_at`: the time of another try."""
    if call is not None:
        release_call(call)
    _rows(task).update(due_at=again_at)


def _due() -> QuerySet[ConversationTitle]:
    now = timezone.now()
    return ConversationTitle.objects.filter(due_at__lte=now, thread__erased_at=None)


def _rows(task: TitleTask) -> QuerySet[ConversationTitle]:
    """Return the row, if this worker has it still and nobody renamed the thread."""
    mine = ConversationTitle.objects.filter(pk=task.run.thread_id, tries=task.tries)
    return mine.filter(due_at__isnull=False)
