"""After a restore: no model is called for titles that may have been written before."""

from __future__ import annotations

from agents.features.conversations.models import ConversationTitle


def keep_first_words() -> None:
    """Finish all titles that were to be written."""
    ConversationTitle.objects.filter(due_at__isnull=False).update(due_at=None)


AFTER_RESTORE = [keep_first_words]
