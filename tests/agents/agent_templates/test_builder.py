"""Building an agent in a chat: stored, resumed, approved, within the user's permissions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client, modify_settings

from agents.models import Agent, ApprovalRequest, Message, Run, ToolCall
from agents.services.agent_definitions.actions import save_agent
from agents.services.agent_definitions.templates import ensure_builder_agent
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from tests.support.runs import drive_to_end, make_user, script_file, start_run

pytestmark = pytest.mark.django_db(transaction=True)

MINE = "name: Mine\nslug: mine\nsystem_prompt: You count.\n"


def builder_of(*permissions: str) -> User:
    user = make_user()
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return User.objects.get(pk=user.pk)


def scripted(tmp_path: Path, *turns: dict[str, Any]) -> Agent:
    agent = ensure_builder_agent()
    agent.provider, agent.model = "scripted", script_file(tmp_path, [*turns, {"text": "Done."}])
    return save_agent(agent)


def call(tool: str, **given: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": tool, "input": given}]}


def pending(run: Run) -> ApprovalRequest:
    return ApprovalRequest.objects.get(run=run, status="pending")


def results(run: Run) -> list[str]:
    calls = ToolCall.objects.filter(run=run).order_by("turn", "position")
    return [json.dumps(json.loads(found.result)) for found in calls if found.result]


def test_a_conversation_begun_in_the_page_ends_with_an_agent(settings: Any) -> None:
    settings.VEL = {**settings.VEL, "PROVIDER": "scripted", "MODEL": ""}
    user = builder_of("add_agent")
    client = Client()
    client.force_login(user)
    begun = client.post("/agents/new/", {"action": "chat", "message": "Something for sales"})
    first = Run.objects.get()
    assert begun["Location"] == f"/runs/{first.pk}/"
    first = drive_to_end(first)
    said = Message.objects.filter(run=first, role="assistant").get().text
    assert "A) Data analyst" in said
    assert f"/runs/{first.pk}/" in client.get("/agents/new/").content.decode()

    # A day and a restart later: another process, the same thread.
    second = drive_to_end(
        start_run(user, "A Sales figures", agent="agent-builder", thread=first.thread_id),
        until=("waiting",),
    )
    request = pending(second)
    assert request.tool == "create_agent"
    assert not Agent.objects.filter(slug="sales-figures").exists()
    decide_approval(request.pk, DecisionRequest("approve", digest=request.digest), by=user)
    assert drive_to_end(second).status == "completed"
    made = Agent.objects.get(slug="sales-figures")
    assert (made.owner, made.everyone) == (user, False)
    assert "You answer questions about data" in made.system_prompt


@pytest.mark.slow
def test_the_edited_definition_is_created(tmp_path: Path) -> None:
    user = builder_of("add_agent")
    scripted(tmp_path, call("create_agent", definition=MINE))
    run = drive_to_end(start_run(user, agent="agent-builder"), until=("waiting",))
    request = pending(run)
    edited = {"definition": MINE.replace("You count.", "You count sheep.")}
    answer = DecisionRequest("edit", digest=request.digest, input=edited)
    decide_approval(request.pk, answer, by=user)
    assert drive_to_end(run).status == "completed"
    assert Agent.objects.get(slug="mine").system_prompt == "You count sheep."


@pytest.mark.slow
def test_the_builder_makes_nothing_that_the_person_may_not(tmp_path: Path) -> None:
    user = builder_of("add_agent")
    hostile = (
        MINE + "network: full\n",
        MINE + "self_approval: true\ninterrupt_on: {execute: false}\n",
        MINE.replace("slug: mine", "slug: agent-builder"),
        MINE + "databases: [payroll]\n",
        MINE + "tools: [send_money]\n",
        MINE + "owner: root\n",
        "a: &a [b]\nc: *a\n",
    )
    scripted(tmp_path, *(call("create_agent", definition=text) for text in hostile))
    before = Agent.objects.get(slug="agent-builder").version
    run = start_run(user, agent="agent-builder")
    for _ in hostile:
        run = drive_to_end(run, until=("waiting",))
        request = pending(run)
        decide_approval(request.pk, DecisionRequest("approve", digest=request.digest), by=user)
    run = drive_to_end(run)
    found = results(run)
    assert run.status == "completed"
    assert len(found) == len(hostile)
    assert all("created" not in each for each in found), found
    assert not Agent.objects.filter(slug="mine").exists()
    assert Agent.objects.get(slug="agent-builder").version == before


def test_without_the_permission_a_draft_is_all_there_is(tmp_path: Path) -> None:
    user = builder_of()
    scripted(tmp_path, call("check_agent", definition=MINE), call("list_agent_parts"))
    run = drive_to_end(start_run(user, agent="agent-builder"))
    checked, parts = results(run)
    assert "agents.add_agent" in checked
    assert "operator" in checked
    assert "write_todos" in parts
    assert not Agent.objects.filter(slug="mine").exists()


def test_a_check_names_the_line_and_changes_nothing(tmp_path: Path) -> None:
    user = builder_of("add_agent")
    scripted(
        tmp_path,
        call("check_agent", definition=MINE + "tools: [reed_file]\n"),
        call("check_agent", definition=MINE),
    )
    run = drive_to_end(start_run(user, agent="agent-builder"))
    wrong, right = results(run)
    assert "line 4" in wrong
    assert "read_file" in wrong
    assert "can be made" in right
    assert not Agent.objects.filter(slug="mine").exists()


def test_an_existing_agent_is_never_changed(tmp_path: Path) -> None:
    user = builder_of("add_agent", "change_agent")
    scripted(
        tmp_path,
        call("create_agent", definition=MINE),
        call("create_agent", definition=MINE.replace("You count.", "You lie.")),
    )
    run = start_run(user, agent="agent-builder")
    for _ in range(2):
        run = drive_to_end(run, until=("waiting",))
        request = pending(run)
        decide_approval(request.pk, DecisionRequest("approve", digest=request.digest), by=user)
    made, refused = results(drive_to_end(run))
    assert "created" in made
    assert "choose another slug" in refused
    agent = Agent.objects.get(slug="mine")
    assert (agent.system_prompt.strip(), agent.version) == ("You count.", 1)


@modify_settings(INSTALLED_APPS={"remove": "agents.features.subagents"})
def test_the_builder_has_no_options_of_features_that_are_not_installed() -> None:
    agent = ensure_builder_agent()
    assert "general_subagent" not in agent.versions.get().spec
