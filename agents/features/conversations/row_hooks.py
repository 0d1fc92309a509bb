"""A model writes a title after a run has ended, unless a person did."""

from __future__ import annotations

from django.utils import timezone

from agents.features.conversations.models import ConversationTitle
from agents.features.conversations.settings import may_have_title
from agents.kernel.row_hooks import RowHooks
from agents.models import POOL, Run, RunClock, Thread
from agents.states import RunStatus

OF_PAGES = "web"
"""`Run.source` of runs that a person started on a page."""


class TitleRows(RowHooks):
    """The task is stored with the end of the run, so that it is not lost with the worker."""

    order = 640

    def ended(self, run: Run, *, wake: bool) -> None:
        """Store the task, once for each thread, and never for a message that no model has got."""
        if run.source != OF_PAGES or run.executor != POOL or run.parent_id is not None:
            return
        if run.status == RunStatus.CANCELLED or run.message_refused:
            return
        if not may_have_title(run.spec.get("provider", "")):
            return
        if RunClock.objects.filter(run=run, turn__gt=0).exists():
            ConversationTitle.objects.get_or_create(
                thread_id=run.thread_id,
                defaults={"run_number": run.number, "due_at": timezone.now()},
            )

    def renamed(self, thread: Thread) -> None:
        """Keep the person's title, also if a worker writes another one at this moment."""
        ConversationTitle.objects.update_or_create(thread=thread, defaults={"due_at": None})

    def forked(self, source: Run, turn: int, thread: Thread) -> None:
        """Keep the copy of a title that is more than the first words."""
        if ConversationTitle.objects.filter(thread=source.thread_id).exists():
            ConversationTitle.objects.get_or_create(thread=thread)


ROW_HOOKS = [TitleRows]
