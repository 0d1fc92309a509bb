"""Choose fallback models for an agent: in the form, in files and over REST."""

from __future__ import annotations

import json

import pytest
from django.urls import reverse

from agents.models import Agent
from agents.services.agent_definitions.files import InvalidAgentFile, carry_out_import, export_agent
from tests.agents.admin import rows
from tests.agents.admin.pages import client_of, text_of
from tests.agents.admin.test_agents import ADD, form

pytestmark = pytest.mark.django_db

CHAIN = [
    {"provider": "anthropic", "model": "claude-haiku-4-5"},
    {"provider": "google", "model": "gemini-3.8-flash"},
]


def test_a_chain_is_saved_pinned_exported_and_shown():
    client = client_of(rows.superuser())
    client.post(reverse(ADD), form(fallbacks=json.dumps(CHAIN)))
    agent = Agent.objects.get(slug="helper")
    assert agent.versions.get().spec["fallbacks"] == CHAIN
    assert "fallbacks:" in export_agent(agent, by=agent.owner or rows.User.objects.get())
    answer = client.get(f"/api/v1/agents/{agent.pk}")
    assert answer.json()["fallbacks"] == CHAIN


def test_the_version_of_an_agent_without_a_chain_has_no_field_for_it():
    client_of(rows.superuser()).post(reverse(ADD), form())
    assert "fallbacks" not in Agent.objects.get(slug="helper").versions.get().spec


WRONG = [
    ([{"provider": "clever", "model": "x"}], "is no provider"),
    ([{"provider": "scripted", "model": "echo"}], "cannot be a fallback"),
    ([CHAIN[0], CHAIN[0]], "is named twice"),
    ([{"provider": "google"}], "Field required"),
    ([{**CHAIN[0], "base_url": "https://evil.example"}], "Extra inputs"),
    ([{**CHAIN[0], "model": f"m{number}"} for number in range(4)], "at most 3"),
    ({"provider": "google"}, "valid array"),
]


@pytest.mark.parametrize(("chain", "words"), WRONG)
def test_errors_appear_at_their_field(chain, words):
    answer = client_of(rows.superuser()).post(reverse(ADD), form(fallbacks=json.dumps(chain)))
    assert words in text_of(answer)
    assert not Agent.objects.exists()


def test_a_file_is_refused_at_its_line():
    text = "name: Helper\nslug: helper\nfallbacks:\n  - provider: clever\n    model: x\n"
    with pytest.raises(InvalidAgentFile) as caught:
        carry_out_import(text, by=rows.superuser(), known_tools=[])
    (problem,) = caught.value.problems
    assert (problem.line, "is no provider" in str(problem)) == (4, True)
