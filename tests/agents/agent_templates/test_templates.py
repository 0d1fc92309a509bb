"""Each template makes a complete agent that can run, and names only existing parts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from agents.agent_templates.catalogue import agent_templates, builder_prompt
from agents.middleware.registry import build_toolset, known_tool_names
from agents.models import Agent, Run, ToolCall
from agents.services.agent_definitions.actions import build_spec, save_agent
from agents.services.agent_definitions.templates import create_from_template
from agents.services.errors import NotAllowed, NotFound
from agents.services.findings import findings_in
from tests.support.runs import drive_to_end, make_user, script_file, start_run

NAMES = ["data-analyst", "decision-desk", "report-writer", "research-assistant"]


def may_add(name: str = "ada") -> User:
    user = make_user(name)
    user.user_permissions.add(Permission.objects.get(codename="add_agent"))
    return User.objects.get(pk=user.pk)


def make(template: str, by: User, name: str = "") -> Agent:
    return create_from_template(template, name=name, by=by, known_tools=known_tool_names())


def test_these_are_the_templates() -> None:
    assert list(agent_templates()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_prompt_names_registered_tools_and_the_behaviour_patterns(name: str) -> None:
    prompt = agent_templates()[name].data["system_prompt"]
    quoted = set(re.findall(r"`([a-z]+_[a-z_]+|ls|grep)`", prompt))
    assert quoted
    assert quoted <= known_tool_names()
    for pattern in ("✅", "A), B), C)", "numbered list", "write_memory", "skill"):
        assert pattern in prompt


@pytest.mark.parametrize("name", NAMES)
def test_the_scanner_finds_no_attack_in_templates(name: str) -> None:
    template = agent_templates()[name]
    file = template.file(name=template.name, slug=template.slug)
    texts = {"prompt": template.data["system_prompt"], "about": template.description, "file": file}
    assert findings_in({**texts, "builder": builder_prompt()}) == []


@pytest.mark.django_db
def test_tools_that_require_approval_need_the_permission_and_a_known_name() -> None:
    ada = may_add()
    client = Client()
    client.force_login(ada)
    form = {"action": "template", "template": "report-writer", "name": "Writer"}
    asking = {**form, "ask_before": "write_file, execute"}
    assert "Tools that require approval" not in client.get("/agents/new/").content.decode()
    assert client.post("/agents/new/", asking).status_code == 400
    ada.user_permissions.add(Permission.objects.get(codename="configure_approval"))
    assert client.post("/agents/new/", {**form, "ask_before": "write_files"}).status_code == 400
    assert not Agent.objects.exists()
    assert client.post("/agents/new/", asking)["Location"] == "/?agent=writer"
    spec = build_spec(Agent.objects.get())
    assert set(spec.interrupt_on) == {"write_file", "execute"}


def test_the_builder_names_registered_tools() -> None:
    quoted = set(re.findall(r"`([a-z]+_[a-z_]+)`", builder_prompt()))
    assert quoted - {"system_prompt"} <= known_tool_names()


@pytest.mark.slow_cases
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", NAMES)
def test_a_template_becomes_an_agent_that_runs(name: str, tmp_path: Path) -> None:
    user = may_add()
    agent = make(name, user, name="Ours")
    assert (agent.slug, agent.owner, agent.everyone) == ("ours", user, False)
    # The agent has each tool that its prompt names.
    tools = build_toolset(build_spec(agent)).tools
    prompt = agent.system_prompt
    assert set(re.findall(r"`([a-z]+_[a-z_]+)`", prompt)) <= set(tools)
    # The agent without changes, except for the scripted model.
    todos = {"todos": [{"content": "Read", "status": "in_progress"}]}
    turns = [{"tool_calls": [{"name": "write_todos", "input": todos}]}, {"text": "Done."}]
    agent.provider, agent.model, agent.sandbox = "scripted", script_file(tmp_path, turns), False
    save_agent(agent)
    run = drive_to_end(start_run(user, "Go", agent="ours"))
    assert run.status == "completed"
    assert ToolCall.objects.get(run=run).status == "succeeded"


@pytest.mark.django_db
def test_two_agents_with_one_name_have_different_slugs() -> None:
    user = may_add()
    assert [make("data-analyst", user).slug for _ in range(3)] == [
        "data-analyst",
        "data-analyst-2",
        "data-analyst-3",
    ]
    assert make("data-analyst", user, name="Ж").slug == "agent"


@pytest.mark.django_db
def test_templates_need_the_permission_to_add_agents() -> None:
    with pytest.raises(NotAllowed, match="add_agent"):
        make("data-analyst", make_user())
    with pytest.raises(NotFound, match="research-assistant"):
        make("nothing", may_add("bob"))
    assert not Agent.objects.exists()
    assert not Run.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "slug"), [("Demo", "demo-2"), ("Agent builder", "agent-builder-2")]
)
def test_no_name_takes_the_slug_of_an_agent_of_vels_own(name: str, slug: str) -> None:
    assert make("report-writer", may_add(), name).slug == slug
