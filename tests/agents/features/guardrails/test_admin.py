"""Choose an agent's guardrails, and its reactions to repetition and failed calls."""

from __future__ import annotations

import pytest
from django.urls import reverse

from agents.models import Agent
from tests.agents.admin import rows
from tests.agents.admin.pages import act, client_of, page_url, text_of
from tests.agents.admin.test_agents import ADD, form
from tests.support.guards import registered

pytestmark = pytest.mark.django_db


def test_guards_are_saved_and_pinned():
    with registered(("Mask", "Everywhere")):
        client = client_of(rows.superuser())
        text = text_of(client.get(reverse(ADD)))
        assert "Masks what looks like an API key in answers" in text
        assert "everywhere (every agent has it)" in text
        retries = '[{"tool": "execute_sql", "attempts": 3, "backoff": 0.5}]'
        client.post(
            reverse(ADD),
            form(guardrails=["secrets", "mask"], on_stuck="end", tool_retries=retries),
        )
    agent = Agent.objects.get(slug="helper")
    spec = agent.versions.get().spec
    assert spec["guardrails"] == ["secrets", "mask"]
    assert spec["on_stuck"] == "end"
    assert spec["tool_retries"] == [{"tool": "execute_sql", "attempts": 3, "backoff": 0.5}]


def test_the_version_of_an_agent_without_guards_has_no_field_for_them():
    client_of(rows.superuser()).post(reverse(ADD), form())
    spec = Agent.objects.get(slug="helper").versions.get().spec
    assert not spec.get("guardrails")
    assert not spec.get("tool_retries")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"guardrails": ["nobody"]}, "There is no guardrail “nobody”"),
        ({"tool_retries": '{"ls": 3}'}, "valid array"),
        ({"tool_retries": '[{"tool": "ls", "attempts": 1}]'}, "greater than or equal to 2"),
        ({"tool_retries": '[{"tool": "ls", "attempts": 2, "wait": 3}]'}, "Extra inputs"),
        ({"on_stuck": "panic"}, "not one of the available choices"),
    ],
)
def test_errors_appear_at_their_field(fields, words):
    answer = client_of(rows.superuser()).post(reverse(ADD), form(**fields))
    assert words in text_of(answer)
    assert not Agent.objects.exists()


@pytest.mark.slow
def test_a_missing_guardrail_is_shown_and_prevents_saving_the_agent():
    with registered(("Mask",)):
        agent = rows.agent("helper", guardrails=["mask"])
    client = client_of(rows.superuser())
    assert "mask (not registered)" in text_of(client.get(page_url(agent)))
    answer = client.post(page_url(agent), form(guardrails=["mask"]))
    assert "is not registered; there are secrets, max_length" in text_of(answer)
    client.post(page_url(agent), form())
    agent.refresh_from_db()
    assert agent.definition == {}


def test_removing_a_guardrail_needs_the_permission_to_configure_approval():
    agent = rows.agent("helper", guardrails=["secrets"])
    client = client_of(rows.staff("writer", "view_agent", "change_agent"))
    client.post(page_url(agent), form(guardrails=[], name="Changed"))
    agent.refresh_from_db()
    assert (agent.name, agent.definition) == ("Changed", {"guardrails": ["secrets"]})


def test_a_duplicate_has_only_guardrails_that_the_person_may_choose():
    agent = rows.agent("helper", guardrails=["secrets"], on_stuck="end")
    act(client_of(rows.superuser()), "duplicate_selected", agent)
    copy = Agent.objects.exclude(pk=agent.pk).get()
    assert copy.definition == {"guardrails": ["secrets"], "on_stuck": "end"}
