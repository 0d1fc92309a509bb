"""A new prompt in the middle of a run, between two model calls."""

from __future__ import annotations

from agents.engine.conversation import conversation_of
from agents.engine.epoch import begin_epoch, head_of
from agents.engine.history import thread_history
from agents.engine.journal import check_fence
from agents.engine.session import Session
from agents.engine.token_count import measured
from agents.providers.base import PromptHead, Role


async def renew_prompt(session: Session) -> None:
    """Begin an epoch with the skills as they are, and a conversation under it.

    The whole conversation is sent anew, so that no cache of the model's helps: this is what
    skills in the system prompt cost.
    """
    head, history = await session.database.run(_renewed, session)
    session.conversation = await conversation_of(
        session.database, session.provider, session.run, head, history
    )
    session.head = head
    session.meter = measured(head, history, session.meter.scale)


def _renewed(session: Session) -> tuple[PromptHead, list[tuple[Role, str]]]:
    check_fence(session.writer)
    epoch = begin_epoch(session.run, session.spec, session.skills, session.window)
    return head_of(epoch), list(thread_history(session.run))
