"""The widgets of lists and mappings in the form of an agent, without scripts."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from agents.middleware.registry import known_tool_names
from agents.services.agent_definitions.definitions import change_definition
from agents.services.agent_definitions.files import export_agent
from tests.agents.admin import rows
from tests.agents.admin.pages import client_of, page_url, text_of
from tests.agents.features.agent_editor.test_editor import RICH
from tests.support.forms import form_data

pytestmark = pytest.mark.django_db


def rich_agent(root: Any) -> Any:
    agent = rows.agent("writer", name="Writer")
    # The admin's own texts strip spaces at their ends.
    fields = {**RICH, "system_prompt": "You write.", "description": "Two\nlines"}
    return change_definition(agent.pk, fields, by=root, known_tools=known_tool_names())


def test_an_unchanged_form_of_a_rich_agent_changes_nothing() -> None:
    root = rows.superuser()
    agent = rich_agent(root)
    before = export_agent(agent, by=root)
    client = client_of(root)
    data = form_data(text_of(client.get(page_url(agent))), "agent_form")

    answer = client.post(page_url(agent), data)

    assert answer.status_code == 302, text_of(answer)
    agent.refresh_from_db()
    assert export_agent(agent, by=root) == before


def test_rules_and_tools_are_changed_without_json() -> None:
    root = rows.superuser()
    agent = rich_agent(root)
    client = client_of(root)
    data = form_data(text_of(client.get(page_url(agent))), "agent_form")
    data |= {
        "approval_rules-1-remove": ["on"],
        "approval_rules-2-position": ["0"],
        "interrupt_on-3-tool": ["glob"],
        "tools-mode": ["some"],
        "tools-pick": ["ls", "glob"],
        "fallbacks-1-provider": ["openai"],
        "fallbacks-1-model": ["gpt"],
    }

    assert client.post(page_url(agent), data).status_code == 302

    agent = type(agent).objects.get(pk=agent.pk)
    spec = agent.versions.order_by("-number").first().spec
    assert [rule["tool"] for rule in spec["approval_rules"]] == ["ls", "execute"]
    assert spec["interrupt_on"]["glob"] is True
    assert spec["tools"] == ["ls", "glob"]
    assert [each["provider"] for each in spec["fallbacks"]] == ["anthropic", "openai"]


def test_a_form_is_not_stored_over_the_changes_of_another_person() -> None:
    root = rows.superuser()
    agent = rich_agent(root)
    client = client_of(root)
    data = form_data(text_of(client.get(page_url(agent))), "agent_form")
    change_definition(agent.pk, {"max_turns": 7}, by=root, known_tools=known_tool_names())

    refused = client.post(page_url(agent), {**data, "name": ["Author"]})

    assert "has changed since you opened this page" in text_of(refused)
    agent.refresh_from_db()
    assert (agent.name, agent.max_turns) == ("Writer", 7)
    again = form_data(text_of(client.get(page_url(agent))), "agent_form")
    assert client.post(page_url(agent), {**again, "name": ["Author"]}).status_code == 302
    agent.refresh_from_db()
    assert (agent.name, agent.max_turns) == ("Author", 7)


def test_a_wrong_row_stays_in_the_form_with_its_error() -> None:
    root = rows.superuser()
    agent = rich_agent(root)
    client = client_of(root)
    data = form_data(text_of(client.get(page_url(agent))), "agent_form")
    data |= {"approval_rules-0-when-command": ["("], "approval_rules-0-reason": ["<b>\u202e"]}

    page = text_of(client.post(page_url(agent), data))

    assert "rule 1, when.command" in page
    again = form_data(page, "agent_form")
    assert again["approval_rules-0-when-command"] == ["("]
    assert again["approval_rules-0-reason"] == ["<b>\\u{202e}"]


def test_the_form_leads_to_the_file_and_to_the_page_of_the_settings() -> None:
    agent = rows.agent("writer", name="Writer")
    page = text_of(client_of(rows.superuser()).get(page_url(agent)))
    assert f"{reverse('web:agent-settings', args=['writer'])}?section=file" in page
