"""Actions of a chat client other than new messages, without a server in between."""

from __future__ import annotations

import pytest

from agents.api.chat import try_again
from agents.models import Agent, Run
from agents.services.errors import NotFound
from agents.states import RunStatus
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
