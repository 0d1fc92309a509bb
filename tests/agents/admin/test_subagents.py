"""The subagents of an agent in its form, and runs of subagents on the pages of runs."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.urls import reverse

from agents.features.subagents.models import Subagent
from agents.features.subagents.types import child_spec, find_subagent
from agents.models import Agent, Run, Thread
from agents.services.agent_definitions.actions import save_agent
from agents.spec import AgentSpec
from tests.agents.admin import rows
from tests.agents.admin.pages import act, client_of, list_url, page_url, text_of
from tests.agents.admin.test_agents import ADD, form
from tests.support.subagents import delegate

pytestmark = pytest.mark.django_db

EXPLORER = {
    "name": "searcher",
    "description": "Searches.",
    "model": "echo",
    "tools": '["ls", "grep"]',
    "skills": "",
    "max_turns": "7",
    "read_only": "on",
}


def subagents(*typed: dict[str, Any], stored: int = 0) -> dict[str, Any]:
    """Return rows of the inline as a browser sends them."""
    fields = {"subagents-TOTAL_FORMS": str(len(typed)), "subagents-INITIAL_FORMS": str(stored)}
    for place, row in enumerate(typed):
        fields |= {f"subagents-{place}-{name}": value for name, value in row.items()}
    return fields


def save(person: User, agent: Agent | None, **fields: Any) -> Any:
    url = reverse(ADD) if agent is None else page_url(agent)
    return client_of(person).post(url, form(**fields), follow=True)


def errors_of(response: Any) -> dict[str, list[str]]:
    """Return the errors of the first subagent, by field."""
    formset = response.context["inline_admin_formsets"][0].formset
    found = {name: list(texts) for name, texts in formset.errors[0].items()}
    return found | {"all": list(formset.non_form_errors())}


def test_a_new_agent_and_its_subagents_are_one_version() -> None:
    root = rows.superuser()
    second = {"name": "writer", "description": "Writes.", "max_turns": "50"}
    save(root, None, **subagents(EXPLORER, second), subagent_depth=2, background_subagents="on")
    agent = Agent.objects.get(slug="helper")
    version = agent.versions.get()
    searcher, writer = version.spec["subagents"]
    assert (searcher["name"], searcher["tools"], searcher["max_turns"]) == (
        "searcher",
        ["ls", "grep"],
        7,
    )
    assert searcher["read_only"] is True
    assert (writer["tools"], writer["model"]) == (None, "")
    assert (version.spec["subagent_depth"], version.spec["background_subagents"]) == (2, True)
    assert version.created_by == root


@pytest.mark.slow
def test_changing_or_removing_one_makes_a_version_and_saving_again_does_not() -> None:
    root = rows.superuser()
    save(root, None, **subagents(EXPLORER))
    agent = Agent.objects.get(slug="helper")
    row = agent.subagents.get()
    typed = {**EXPLORER, "id": row.pk, "agent": agent.pk}
    save(root, agent, **subagents(typed, stored=1))
    assert agent.versions.count() == 1
    save(root, agent, **subagents({**typed, "max_turns": "9"}, stored=1))
    agent.refresh_from_db()
    assert agent.version == 2
    assert agent.versions.get(number=2).spec["subagents"][0]["max_turns"] == 9
    kept = agent.subagents.get()
    save(root, agent, **subagents({**typed, "id": kept.pk, "DELETE": "on"}, stored=1))
    agent.refresh_from_db()
    assert agent.version == 3
    assert not agent.subagents.exists()
    assert "subagents" not in agent.versions.get(number=3).spec


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"tools": "no name"}, "tools", "is not the name of a tool"),
        ({"tools": '["ls", 3]'}, "tools", "is not the name of a tool"),
        ({"tools": '["ls", "ls"]'}, "tools", "more than once"),
        ({"skills": '["a", 3]'}, "skills", "Expected a list"),
        ({"name": "default"}, "name", "another name of general"),
        ({"name": "Big"}, "name", "String should match"),
        ({"name": "no spaces"}, "name", "valid"),
        ({"description": ""}, "description", "required"),
        ({"max_turns": "0"}, "max_turns", "greater than or equal to 1"),
    ],
)
def test_errors_appear_at_their_field(changes: dict[str, str], field: str, says: str) -> None:
    response = save(rows.superuser(), None, **subagents({**EXPLORER, **changes}))
    assert response.status_code == 200
    assert says in errors_of(response)[field][0]
    assert not Agent.objects.exists()
    assert not Subagent.objects.exists()


def test_two_of_one_name_are_refused() -> None:
    response = save(rows.superuser(), None, **subagents(EXPLORER, EXPLORER))
    assert "correct the duplicate data" in text_of(response)
    assert not Agent.objects.exists()


def test_people_who_change_agents_change_subagents_without_their_guarded_parts() -> None:
    agent = rows.agent(
        "helper",
        interrupt_on={"execute": True},
        tools=["ls", "execute"],
        sandbox=True,
        network="none",
    )
    editor = rows.staff("editor", "view_agent", "change_agent")
    smuggled = {
        "tools": '["execute", "execute_sql"]',
        "sandbox": "",
        "network": "full",
        "interrupt_on": "{}",
        "approval_rules": '[{"tool": "execute", "action": "allow"}]',
        "databases": "1",
        "toolbox": "x",
    }
    save(
        editor,
        agent,
        **subagents({**EXPLORER, **smuggled}),
        network="full",
        interrupt_on="{}",
        approval_rules='[{"tool": "execute", "action": "allow"}]',
    )
    agent.refresh_from_db()
    assert agent.version == 2
    spec = AgentSpec.model_validate(agent.versions.get(number=2).spec)
    found = find_subagent(spec, "searcher")
    assert found is not None
    child = child_spec(spec, found)
    assert "execute" in (child.tools or ())
    for name in ("sandbox", "network", "allowed_hosts", "toolbox"):
        assert getattr(child, name) == getattr(spec, name) == AgentSpec.model_fields[name].default
    assert child.interrupt_on == {"execute": True}
    assert child.approval_rules == ()


@pytest.mark.parametrize("permissions", [("view_agent",), ("view_agent", "add_agent")])
def test_others_change_no_subagents(permissions: tuple[str, ...]) -> None:
    agent = rows.agent("helper")
    looker = rows.staff("looker", *permissions)
    save(looker, agent, **subagents(EXPLORER))
    assert not Subagent.objects.exists()
    save_agent(agent, related={"subagents": [Subagent(name="searcher", description="Searches.")]})
    page = text_of(client_of(looker).get(page_url(agent)))
    assert "searcher" in page
    assert 'name="subagents-0-name"' not in page


def test_a_copy_has_the_same_subagents() -> None:
    agent = rows.agent("helper")
    save_agent(agent, related={"subagents": [Subagent(name="searcher", description="Searches.")]})
    act(client_of(rows.superuser()), "duplicate_selected", agent)
    copy = Agent.objects.get(slug="helper-copy")
    assert [row.name for row in copy.subagents.all()] == ["searcher"]
    assert copy.versions.get().spec["subagents"][0]["name"] == "searcher"
    assert agent.subagents.count() == 1


def family() -> tuple[Run, Run]:
    parent = rows.run(rows.user())
    with transaction.atomic():
        (child,) = delegate(parent, "Look at \u202eit")
    return parent, child


def test_a_parent_lists_its_subagents_and_each_names_the_way_to_it() -> None:
    parent, child = family()
    client = client_of(rows.superuser())
    above = text_of(client.get(page_url(parent)))
    assert page_url(child) in above
    assert "Look at ⟨U+202E⟩it" in above
    below = text_of(client.get(page_url(child)))
    assert page_url(parent) in below
    assert "Coder › explore" in below
    assert "coder v1 › explore" in text_of(client.get(list_url(Run)))


def test_the_list_of_threads_has_those_of_people() -> None:
    parent, child = family()
    client = client_of(rows.superuser())
    listed = text_of(client.get(list_url(Thread)))
    assert page_url(parent.thread) in listed
    assert page_url(child.thread) not in listed
    assert page_url(child.thread) not in text_of(client.get(page_url(child)))


def test_the_run_of_a_subagent_is_not_resumed_alone() -> None:
    _, child = family()
    client = client_of(rows.superuser())
    response = client.post(page_url(child), {"operation": "resume"}, follow=True)
    assert "Resume the run that started it" in text_of(response)
