"""Other actions of a chat client: responses to approval requests, and retries."""

from __future__ import annotations

from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import QuerySet

from agents.api.serializers.chat import CHAT_ID_CHARACTERS, Answers
from agents.events.projections.ui import DIALECTS
from agents.middleware.decisions import decide
from agents.models import Run, Thread
from agents.selectors.chats import asked_at, chat_thread, newest_runs
from agents.selectors.visible import Person, agents_for, approvals_for, runs_for
from agents.services.approvals.decisions import DecisionRequest
from agents.services.errors import Conflict, InvalidRequest, NotFound
from agents.services.runs.control import resume_run
from agents.states import ApprovalStatus, Decision, RunStatus


def answer(
    user: AbstractBaseUser, agent: str, chat_id: str, said: Answers, version: int
) -> tuple[Run, int]:
    """Apply the client's decisions, each request once. If one id is wrong, none is applied."""
    if not DIALECTS[version].stops_for_approvals:
        raise InvalidRequest(
            f"Version {version} knows no approvals: decide by POST /approvals/{{id}}/decide."
        )
    run = own_runs(user).filter(pk=said.run_id, thread=chat_of(user, agent, chat_id)).first()
    if run is None:
        raise NotFound("The message that is answered is none of this chat's.")
    ids = {each.approval_id for each in said.answers}
    known = approvals_for(user).filter(pk__in=ids, run=run, tool_call__isnull=False)
    statuses = dict(known.values_list("pk", "status"))
    if statuses.keys() != ids:
        raise NotFound("This message has no such request that you may decide.")
    for each in said.answers:
        if statuses[each.approval_id] != ApprovalStatus.PENDING:
            continue  # decided already; the stream contains that decision
        decision = Decision.APPROVE if each.approved else Decision.REJECT
        # No digest: the id is bound to the displayed request.
        decide(each.approval_id, DecisionRequest(decision, reason=each.reason), by=user)
    return run, asked_at(run, ids)


def try_again(user: AbstractBaseUser, agent: str, chat_id: str) -> Run:
    """Resume the last run if it failed. Raises `NotFound` if `user` can no longer use the agent."""
    thread = chat_of(user, agent, chat_id)
    if not agents_for(user).filter(pk=thread.agent_id).exists():
        raise NotFound(f"There is no agent {agent!r} that you may use.", code="unknown_agent")
    last = newest_runs(thread, before=None, limit=1)
    if not last or last[0].status != RunStatus.FAILED:
        raise Conflict(
            "Only an answer that failed is made again, and goes on where it failed. What was said "
            "stays in a thread: send a new message.",
            code="history_is_fixed",
        )
    return resume_run(last[0].pk)


def check_chat_id(chat_id: str) -> None:
    """Raise `InvalidRequest` if the id cannot be stored, or cannot be part of the URL of a chat."""
    fits = 0 < len(chat_id) <= CHAT_ID_CHARACTERS and chat_id.isprintable()
    if not fits or "/" in chat_id or chat_id in (".", ".."):
        raise InvalidRequest(
            f"The chat's id must have 1 to {CHAT_ID_CHARACTERS} printable characters, none of them "
            "a slash."
        )


def chat_of(user: AbstractBaseUser, agent: str, chat_id: str) -> Thread:
    """Return the thread of a chat. Raises `NotFound`, or `InvalidRequest` for an invalid id."""
    check_chat_id(chat_id)
    thread = chat_thread(user, agent, chat_id)
    if thread is None:
        raise NotFound(f"You have no chat {chat_id!r} with this agent.", code="unknown_thread")
    return thread


def own_runs(user: Person) -> QuerySet[Run]:
    """Return the runs owned by `user`, without runs of others that `user` can read."""
    return runs_for(user).filter(owner=user.pk)
