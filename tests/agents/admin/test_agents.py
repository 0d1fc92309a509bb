"""Definition of agents in the admin."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agents.models import Agent
from tests.agents.admin import rows
from tests.agents.admin.pages import act, client_of, list_url, messages_of, page_url, text_of

pytestmark = pytest.mark.django_db

ADD = "admin:agents_agent_add"
INLINE = {
    f"{rows}-{name}": "0"
    for rows in ("versions", "subagents")
    for name in ("TOTAL_FORMS", "INITIAL_FORMS", "MIN_NUM_FORMS", "MAX_NUM_FORMS")
}


def form(**changes: Any) -> dict[str, Any]:
    """Return the fields of the agent's form as a browser sends them."""
    return {
        "name": "Helper",
        "slug": "helper",
        "max_output_tokens": 16_000,
        "profile": "full",
        "builtin_skills": "on",
        "suggest_skills": "on",
        "skill_mode": "tool_result",
        "tools": "",
        "interrupt_on": "",
        "approval_rules": "",
        "approvals_needed": 1,
        "self_approval": "on",
        "sandbox": "on",
        "network": "none",
        "general_subagent": "on",
        "prompt_caching": "on",
        "context_management": "on",
        "max_concurrent_subagents": 5,
        "subagent_depth": 1,
        "max_turns": 500,
        "output_repairs": 2,
        "on_stuck": "note",
        "is_active": "on",
        **INLINE,
        **changes,
    }


def test_a_new_agent_is_saved_with_its_first_version():
    root = rows.superuser()

    client_of(root).post(
        reverse(ADD), form(interrupt_on='{"execute": true}', tools='["ls", "execute"]')
    )

    agent = Agent.objects.get(slug="helper")
    version = agent.versions.get()
    assert (agent.version, version.number, version.created_by) == (1, 1, root)
    assert version.spec["interrupt_on"] == {"execute": True}
    assert version.spec["tools"] == ["ls", "execute"]


@pytest.mark.parametrize("slug", ["agent-builder", "demo"])
def test_the_slug_of_an_agent_of_vels_own_is_not_taken(slug: str):
    page = client_of(rows.superuser()).post(reverse(ADD), form(slug=slug))

    assert "Choose another slug" in text_of(page)
    assert not Agent.objects.filter(slug=slug).exists()


@pytest.mark.slow
def test_a_change_makes_a_version_that_lists_its_changes():
    root = rows.superuser()
    agent = rows.agent("helper", name="Helper", system_prompt="You are kind.\nYou are quick.")
    client = client_of(root)

    client.post(page_url(agent), form(system_prompt="You are kind.\nYou are slow.", max_turns=40))

    agent.refresh_from_db()
    assert agent.version == 2
    text = text_of(client.get(page_url(agent)))
    assert '<span class="vel-removed">- You are quick.' in text
    assert '<span class="vel-added">+ You are slow.' in text
    assert '<del class="vel-removed">500</del> → <ins class="vel-added">40</ins>' in text


def test_a_save_without_effect_on_runs_makes_no_version():
    agent = rows.agent("helper", name="Helper")

    client_of(rows.superuser()).post(page_url(agent), form(description="Only a note."))

    agent.refresh_from_db()
    assert (agent.description, agent.version) == ("Only a note.", 1)


def test_versions_are_not_changed_through_the_page():
    agent = rows.agent("helper", name="Helper")
    version = agent.versions.get()
    forged = {
        "versions-TOTAL_FORMS": "1",
        "versions-INITIAL_FORMS": "1",
        "versions-0-id": version.pk,
        "versions-0-agent": agent.pk,
        "versions-0-number": 9,
        "versions-0-DELETE": "on",
    }

    client_of(rows.superuser()).post(page_url(agent), form(**forged))

    version.refresh_from_db()
    assert version.number == 1


@pytest.mark.parametrize(
    ("field", "typed", "complaint"),
    [
        ("tools", "ls, read_file", "This is not JSON"),
        ("tools", '"ls"', "Give a list of tool names"),
        ("tools", '["ls", 3]', "3 is not the name of a tool"),
        ("tools", '["ls", "rm -rf"]', "is not the name of a tool"),
        ("tools", '["ls", "ls"]', "Named more than once: ls."),
        ("interrupt_on", "{execute: true}", "This is not JSON"),
        ("interrupt_on", '["execute"]', "Give an object of tool names"),
        ("interrupt_on", '{"execute": "yes"}', "The rule of execute is"),
        ("interrupt_on", '{"execute": {"allow": []}}', "The rule of execute is"),
        ("interrupt_on", '{"execute": {"allowed_decisions": []}}', "not empty"),
        ("interrupt_on", '{"execute": {"allowed_decisions": ["allow"]}}', "has allow: choose from"),
        ("command_timeout", "601", "less than or equal to 600"),
        ("slug", "not a slug", "valid “slug”"),
    ],
)
def test_an_invalid_value_is_an_error_of_its_field(field, typed, complaint):
    response = client_of(rows.superuser()).post(reverse(ADD), form(**{field: typed}))

    assert response.status_code == 200
    errors = response.context["adminform"].form.errors
    assert list(errors) == [field]
    assert complaint in errors[field][0]
    assert not Agent.objects.exists()


def test_a_refusal_by_the_service_is_also_an_error_of_its_field():
    response = client_of(rows.superuser()).post(
        reverse(ADD), form(allowed_hosts='["https://example.org/"]')
    )

    assert list(response.context["adminform"].form.errors) == ["allowed_hosts"]


@pytest.mark.parametrize(
    ("field", "typed"),
    [
        ("sandbox", ""),
        ("tools", '["read_file", "execute_in_sandbox"]'),
        ("interrupt_on", '{"execute": true}'),
        ("integrations", ["slack"]),
    ],
)
def test_a_value_that_the_profile_ignores_is_an_error_of_its_field(field, typed):
    given = form(profile="sandbox_only", **{field: typed})
    if typed == "":
        del given[field]
    response = client_of(rows.superuser()).post(reverse(ADD), given)

    assert list(response.context["adminform"].form.errors) == [field]
    assert not Agent.objects.exists()


def test_without_the_permission_the_sandbox_is_shown_and_not_changed():
    agent = rows.agent("helper", name="Helper", network="none", command_timeout=30)
    client = client_of(rows.staff("editor", "view_agent", "change_agent"))

    page = text_of(client.get(page_url(agent)))
    client.post(page_url(agent), form(network="full", command_timeout=600, sandbox="", max_turns=7))

    agent.refresh_from_db()
    assert 'name="network"' not in page
    assert (agent.network, agent.command_timeout, agent.sandbox) == ("none", 30, True)
    assert agent.max_turns == 7


def test_with_the_permission_the_sandbox_is_changed():
    agent = rows.agent("helper", name="Helper")
    client = client_of(rows.staff("editor", "change_agent", "configure_sandbox"))

    client.post(page_url(agent), form(network="allowlist", command_timeout=60))

    agent.refresh_from_db()
    assert (agent.network, agent.command_timeout) == ("allowlist", 60)


def test_a_used_agent_is_not_deleted_and_the_page_gives_the_reason():
    run = rows.run(rows.user())
    agent = run.agent_version.agent
    client = client_of(rows.superuser())

    page = text_of(
        client.post(reverse("admin:agents_agent_delete", args=[agent.pk]), {"post": "yes"})
    )
    several = text_of(act(client, "delete_selected", agent, post="yes"))

    for text in (page, several):
        assert "Coder has 1 runs and 1 threads." in text
    assert Agent.objects.filter(pk=agent.pk).exists()


def test_an_unused_agent_is_deleted():
    agent = rows.agent("unused")

    client_of(rows.superuser()).post(
        reverse("admin:agents_agent_delete", args=[agent.pk]), {"post": "yes"}
    )

    assert not Agent.objects.exists()


def test_a_duplicate_belongs_to_its_creator_and_is_not_shared():
    root = rows.superuser()
    agent = rows.agent("helper", name="Helper", network="full", system_prompt="Hi.", everyone=True)
    agent.groups.add(Group.objects.create(name="all"))
    client = client_of(root)

    act(client, "duplicate_selected", agent)
    response = act(client, "duplicate_selected", agent)

    copies = list(Agent.objects.exclude(pk=agent.pk).order_by("slug"))
    assert [copy.slug for copy in copies] == ["helper-copy", "helper-copy-2"]
    assert "duplicated as helper-copy-2" in messages_of(response)[0]
    for copy in copies:
        assert (copy.owner, copy.everyone, copy.groups.count()) == (root, False, 0)
        assert (copy.system_prompt, copy.network, copy.version) == ("Hi.", "full", 1)


def test_a_duplicate_needs_the_permission_for_its_network():
    agent = rows.agent("helper", network="full", command_timeout=600)
    client = client_of(rows.staff("editor", "add_agent", "view_agent"))

    act(client, "duplicate_selected", agent)

    copy = Agent.objects.exclude(pk=agent.pk).get()
    assert (copy.sandbox, copy.network, copy.command_timeout) == (True, "none", None)


def test_duplicating_needs_the_permission_to_add():
    agent = rows.agent("helper")

    act(client_of(rows.staff("reader", "view_agent")), "duplicate_selected", agent)

    assert Agent.objects.count() == 1


def test_a_viewer_reads_an_agent_and_its_versions():
    agent = rows.agent("helper", system_prompt="You are kind.")
    client = client_of(rows.staff("reader", "view_agent"))

    text = text_of(client.get(page_url(agent)))

    assert "You are kind." in text
    assert "First version" in text
    assert client.post(page_url(agent), form()).status_code == 403


def test_the_list_shows_provider_and_model_in_force(settings):
    settings.VEL = {**settings.VEL, "PROVIDER": "anthropic", "MODEL": "some-model-of-the-settings"}
    rows.agent("helper")
    rows.agent("other", provider="scripted", model="my-script")

    text = text_of(client_of(rows.superuser()).get(list_url(Agent)))

    for shown in ("anthropic", "some-model-of-the-settings", "scripted", "my-script"):
        assert shown in text


@pytest.mark.slow
def test_the_list_and_the_page_need_no_more_queries_for_many_rows_than_for_few():
    agent = rows.agent("helper", name="Helper")
    client = client_of(rows.superuser())
    client.get(page_url(agent))
    with CaptureQueriesContext(connection) as few_of_page:
        client.get(page_url(agent))
    with CaptureQueriesContext(connection) as few_of_list:
        client.get(list_url(Agent))
    for number in range(2, 9):
        agent.max_turns = number
        rows.save_agent(agent)
    for number in range(9):
        rows.agent(f"agent-{number}")

    with CaptureQueriesContext(connection) as of_page:
        client.get(page_url(agent))
    with CaptureQueriesContext(connection) as of_list:
        text = text_of(client.get(list_url(Agent)))

    assert text.count('class="action-select"') == 10
    assert len(of_list) <= len(few_of_list) + 1
    assert len(of_page) <= len(few_of_page)
