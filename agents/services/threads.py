"""Titles of threads."""

from __future__ import annotations

from django.db import transaction
from django.utils.text import Truncator

from agents.kernel import row_hooks
from agents.models import Thread
from agents.services.errors import InvalidRequest

MAX_TITLE = 200


def first_words(message: str) -> str:
    """Return the title that a thread gets from its first message."""
    return Truncator(" ".join(message.split())).chars(80)


@transaction.atomic
def rename_thread(thread: Thread, title: str) -> Thread:
    """Set the title of a thread, with single spaces for line breaks and other blanks.

    Raises `InvalidRequest` unless it then has 1 to `MAX_TITLE` characters and no NUL.
    """
    title = " ".join(title.split())
    if not 0 < len(title) <= MAX_TITLE or "\x00" in title:
        raise InvalidRequest(f"A title has 1 to {MAX_TITLE} characters.")
    thread = Thread.objects.select_for_update(no_key=True).get(pk=thread.pk)
    thread.title = title
    thread.save(update_fields=["title", "updated_at"])
    row_hooks.renamed(thread)
    return thread
