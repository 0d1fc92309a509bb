"""Review of a reply by middleware before it is stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agents.engine.storage.notes import note_json
from agents.events.append import EventDraft
from agents.kernel.middleware import Commit, Ending, ReplyDecision
from agents.kernel.park import End
from agents.providers.base import Reply

if TYPE_CHECKING:
    from agents.engine.session import Session


@dataclass(slots=True)
class Review:
    """The result of a review: `reply` is stored and sent back, `shown` goes to clients.

    With `ends`, the run ends with the reply. With a `note` (from `note_json`), the model is called
    again instead. With an `end`, the run fails.
    """

    reply: Reply
    shown: Reply
    ends: bool
    drafts: list[EventDraft] = field(default_factory=list)
    note: str = ""
    author: str = ""
    """The name of the feature that wrote the note."""
    end: End | None = None
    completed: dict[str, Any] = field(default_factory=dict)
    """Fields to add to the event `run.completed`."""
    commits: list[Commit] = field(default_factory=list)

    def add(self, author: str, decision: ReplyDecision) -> None:
        """Add the decision of the middleware `author`.

        Raises `RuntimeError` if it adds a note to a reply that does not end the run.
        """
        if decision.note:
            if not self.ends:
                raise RuntimeError(
                    f"The middleware {author} adds a note to a reply that does not end the run. "
                    "Look at `ending.ends` first, or return `Tell` from before_model."
                )
            self.ends, self.note, self.author = False, note_json(decision.note), author
        if decision.reply is not None:
            self.reply = decision.reply
        if decision.shown is not None:
            self.shown = decision.shown
        self.drafts += decision.events
        if decision.end is not None:
            self.drafts += decision.end.events
            self.ends, self.end = True, decision.end
        self.completed |= decision.completed
        self.commits += [Commit(write, True, None) for write in decision.writes]
        if decision.then is not None:
            self.commits.append(Commit(_nothing, False, decision.then))


def _nothing() -> None:
    """Do nothing: there is no row to write."""


async def review_reply(session: Session, turn: int, reply: Reply) -> Review:
    """Return the decisions of all middleware about a reply.

    After a decision that fails the run, no other middleware is asked.
    """
    review = Review(reply, reply, ends=not has_calls(reply) and reply.stop_reason != "pause_turn")
    if session.chain.after_model:
        with session.handle.interruptible():
            for item in session.chain.after_model:
                ending = Ending(turn, review.reply, review.shown, review.ends)
                decision = await item.after_model(session.context, ending)
                if decision is not None:
                    review.add(item.name, decision)
                if review.end is not None:
                    break
    return review


def has_calls(reply: Reply) -> bool:
    """Return whether the reply has tool calls."""
    return any(block["type"] == "tool_use" for block in reply.blocks)
