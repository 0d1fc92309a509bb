"""The admin in German: the same forms and rows, with German texts."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils.translation import override

from agents.features.agent_editor.form import sections
from agents.models import RunClock
from agents.services.agent_definitions.files import export_agent
from agents.states import RunStatus
from tests.agents.admin import rows
from tests.agents.admin.pages import act, client_of, messages_of, page_url, text_of
from tests.agents.admin.test_agent_form import rich_agent
from tests.support.forms import form_data

pytestmark = pytest.mark.django_db


def german(client: Client) -> Client:
    client.cookies["vel_language"] = "de"
    return client


def test_messages_are_german_and_the_history_is_english() -> None:
    client = german(client_of(rows.superuser()))
    owner = rows.user()
    queued, ended = rows.run(owner), rows.put(rows.run(owner), RunStatus.COMPLETED)

    answer = act(client, "cancel_selected", queued, ended, confirmed="cancel_selected")

    assert sorted(messages_of(answer)) == [
        f"1 von 2: abgebrochen (Lauf {queued.pk}).",
        f"1 von 2: war schon beendet (completed) (Lauf {ended.pk}).",
    ]
    history = LogEntry.objects.values_list("object_id", "change_message")
    assert set(history) == {
        (queued.pk, "cancelled"),
        (ended.pk, "had ended already (completed)"),
    }
    assert RunClock.objects.get(run=queued).cancel_reason == "cancelled in the admin"


def test_the_history_names_changed_fields_and_rows_in_english() -> None:
    root = rows.superuser()
    agent = rich_agent(root)
    client = german(client_of(root))
    data = form_data(text_of(client.get(page_url(agent))), "agent_form")
    assert client.post(page_url(agent), {**data, "max_turns": "7"}).status_code == 302
    budget = {"user": root.pk, "period": "month", "max_tokens": "9"}
    assert client.post("/admin/vel_budgets/budget/add/", budget).status_code == 302
    assert set(LogEntry.objects.values_list("object_repr", "change_message")) == {
        (agent.name, '[{"changed": {"fields": ["Max turns"]}}]'),
        ("root, a month", '[{"added": {}}]'),
    }


def test_an_unchanged_german_form_of_a_rich_agent_changes_nothing() -> None:
    root = rows.superuser()
    agent = rich_agent(root)
    before = export_agent(agent, by=root)
    client = german(client_of(root))
    page = text_of(client.get(page_url(agent)))

    answer = client.post(page_url(agent), form_data(page, "agent_form"))

    assert answer.status_code == 302, text_of(answer)
    agent.refresh_from_db()
    assert export_agent(agent, by=root) == before


def test_the_german_form_has_all_fields_of_the_english_one() -> None:
    root = rows.superuser()
    agent = rich_agent(root)
    client = client_of(root)
    english = text_of(client.get(page_url(agent)))
    page = text_of(german(client).get(page_url(agent)))

    assert "Sandbox und Netzwerk" in page
    assert form_data(page, "agent_form").keys() == form_data(english, "agent_form").keys()


def test_the_sections_of_the_editor_have_the_same_addresses_in_german() -> None:
    english = sections()
    with override("de"):
        found = sections()
    assert list(found) == list(english)
    assert found["approval"][0] != english["approval"][0]
