"""Actions of a chat client other than new messages, without a server in between."""

from __future__ import annotations

import pytest

from agents.api.chat import answer, try_again
from agents.api.serializers.chat import Answer, Answers, last_message
from agents.models import Agent, Run
from agents.services.errors import Conflict, InvalidRequest, NotFound
from agents.states import RunStatus
from tests.agents.api.rows import ask_approval
from tests.support.runs import make_agent, make_user, start_run

pytestmark = pytest.mark.django_db


def test_a_person_who_lost_the_agent_cannot_retry() -> None:
    owner, other = make_user(), make_user("bob")
    agent = make_agent(other, everyone=True)
    run = start_run(owner, key="mine")
    for change in ({"is_active": False, "everyone": True}, {"is_active": True, "everyone": False}):
        Run.objects.filter(pk=run.pk).update(status=RunStatus.FAILED)
        Agent.objects.filter(pk=agent.pk).update(**change)
        with pytest.raises(NotFound):
            try_again(owner, agent.slug, "mine")
        run.refresh_from_db()
        assert run.status == RunStatus.FAILED
    Agent.objects.filter(pk=agent.pk).update(is_active=True, everyone=True)
    assert try_again(owner, agent.slug, "mine").status == RunStatus.QUEUED


def test_only_the_last_answer_can_be_regenerated() -> None:
    owner = make_user()
    agent = make_agent(owner)
    earlier = start_run(owner, key="mine")
    Run.objects.filter(pk=earlier.pk).update(status=RunStatus.COMPLETED)
    last = start_run(owner, key="mine")
    Run.objects.filter(pk=last.pk).update(status=RunStatus.FAILED)
    for message_id in (earlier.pk, f"{earlier.pk}-user"):
        with pytest.raises(Conflict, match="Only the last answer"):
            try_again(owner, agent.slug, "mine", message_id)
        last.refresh_from_db()
        assert last.status == RunStatus.FAILED
    for message_id in ("", "of-the-client", f"{last.pk}-user", last.pk):
        Run.objects.filter(pk=last.pk).update(status=RunStatus.FAILED)
        assert try_again(owner, agent.slug, "mine", message_id).pk == last.pk


def test_decisions_that_are_not_all_possible_change_nothing() -> None:
    owner = make_user(is_superuser=True)
    agent = make_agent(owner)
    run = start_run(owner, key="mine")
    first, second = ask_approval(run), ask_approval(run, allowed=("approve",))
    said = Answers(run.pk, (Answer(first.pk, True, ""), Answer(second.pk, False, "no")))
    with pytest.raises(InvalidRequest):
        answer(owner, agent.slug, "mine", said, 6)
    first.refresh_from_db()
    assert first.status == "pending"


def test_two_decisions_for_one_request_are_refused() -> None:
    parts = [
        {"state": "approval-responded", "approval": {"id": "a", "approved": approved}}
        for approved in (True, False)
    ]
    with pytest.raises(InvalidRequest, match="answers one request for approval twice"):
        last_message([{"id": "r", "role": "assistant", "parts": parts}])
