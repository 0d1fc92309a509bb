"""A scripted model does not show which files the server has."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from agents.features.subagents.models import Subagent
from agents.models import Agent, Run
from agents.providers.scripted import FILES_REFUSED
from agents.services.agent_definitions.actions import save_agent
from tests.agents.admin import rows
from tests.agents.admin.pages import act, client_of, messages_of, page_url, text_of
from tests.agents.admin.test_agents import form
from tests.agents.api.rows import client_for, post, problem_of
from tests.support.runs import (
    drive_to_end,
    make_agent,
    make_user,
    script_file,
    start_run,
)
from vel import create_deep_agent

pytestmark = pytest.mark.django_db(transaction=True)

MAY = ("add_agent", "change_agent", "view_agent")
TEXT = "name: Helper\nslug: helper\nprovider: scripted\nmodel: {model}\n"
WITH_SUBAGENT = (
    "name: Helper\nslug: helper\nsubagents:\n- name: looks\n  description: Looks.\n"
    "  provider: scripted\n  model: {model}\n"
)


@pytest.fixture(autouse=True)
def _no_directory(settings: Any) -> None:
    settings.VEL = {**settings.VEL, "SCRIPTS_DIR": None}


@pytest.fixture(params=["there", "missing"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    there = script_file(tmp_path, [{"text": "I was played."}])
    return there if request.param == "there" else f"file:{tmp_path}/none.json"


@pytest.mark.parametrize("text", [TEXT, WITH_SUBAGENT])
def test_an_import_over_rest_is_refused(model: str, text: str) -> None:
    client = client_for(rows.staff("ed", *MAY))
    for dry_run in (True, False):
        body = {"yaml": text.format(model=model), "dry_run": dry_run}
        answer = post(client, "/api/v1/agents/import", body)
        assert answer.status_code == 400
        problem = problem_of(answer)
        assert problem["detail"].endswith(f"model: {FILES_REFUSED}"), problem
        assert model not in str(problem)
    assert not Agent.objects.exists()


def test_an_import_in_the_admin_is_refused(model: str) -> None:
    page = client_of(rows.superuser()).post(
        reverse("admin:agents_agent_import"), {"text": TEXT.format(model=model)}
    )
    assert page.status_code == 400
    assert "line 4: model: scripts in files are played" in text_of(page)


def test_the_form_of_the_admin_refuses(model: str) -> None:
    client = client_of(rows.superuser())
    subagent = {
        "subagents-TOTAL_FORMS": 1,
        "subagents-0-name": "looks",
        "subagents-0-description": "Looks.",
        "subagents-0-provider": "scripted",
        "subagents-0-model": model,
        "subagents-0-max_turns": 5,
    }
    for fields in ({"provider": "scripted", "model": model}, subagent):
        page = client.post(reverse("admin:agents_agent_add"), form(**fields))
        assert page.status_code == 200
        assert "scripts in files are played" in text_of(page)
    assert not Agent.objects.exists()


def test_a_script_given_by_a_program_stays_and_is_not_copied(model: str) -> None:
    """The command line's agents are in the admin too."""
    boss = rows.superuser()
    agent = rows.agent("helper", name="Helper", provider="scripted", model=model)
    client = client_of(boss)
    # The limits can be changed; the model does not change.
    fields = form(provider="scripted", model=model, max_turns=3, everyone="on")
    done = client.post(page_url(agent), fields)
    assert done.status_code == 302, text_of(done)
    agent.refresh_from_db()
    assert (agent.max_turns, agent.model) == (3, model)
    yaml = TEXT.format(model=model) + "max_turns: 4\neveryone: true\n"
    answer = post(client_for(boss), "/api/v1/agents/import", {"yaml": yaml})
    assert answer.status_code == 200, answer.json()
    copied = act(client, "duplicate_selected", agent)
    assert "scripts in files are played" in " ".join(messages_of(copied))
    assert Agent.objects.count() == 1


def test_the_builder_cannot_use_script_files(model: str, tmp_path: Path, settings: Any) -> None:
    settings.VEL = {**settings.VEL, "SCRIPTS_DIR": tmp_path / "played"}
    (tmp_path / "played").mkdir()
    user = make_user()
    user.user_permissions.set(rows.Permission.objects.filter(codename="add_agent"))
    turns = [
        {
            "tool_calls": [
                {"name": "check_agent", "input": {"definition": TEXT.format(model=model)}}
            ]
        },
        {"text": "Done."},
    ]
    own = script_file(tmp_path / "played", turns, "builder.json")
    make_agent(user, model=own, integrations=["agents"])
    run = drive_to_end(start_run(User.objects.get(pk=user.pk)))
    call = run.tool_calls.get()
    assert FILES_REFUSED in call.result, call.result
    assert not Agent.objects.filter(slug="helper").exists()


def test_a_worker_never_plays_script_files(model: str, settings: Any) -> None:
    user = make_user()
    make_agent(user, model=model)
    run = drive_to_end(start_run(user))
    assert (run.status, run.error_code) == ("failed", "model_permission")
    assert run.error_message == FILES_REFUSED


@pytest.mark.slow
def test_a_subagent_never_plays_script_files(model: str, tmp_path: Path, settings: Any) -> None:
    played = tmp_path / "played"
    played.mkdir()
    settings.VEL = {**settings.VEL, "SCRIPTS_DIR": played}
    task = {"name": "task", "input": {"subagent": "looks", "task": "Look."}}
    own = script_file(played, [{"tool_calls": [task]}, {"text": "Done."}])
    user = make_user()
    agent = make_agent(user, model=own)
    save_agent(
        agent, related={"subagents": [Subagent(name="looks", description="Looks.", model=model)]}
    )
    run = drive_to_end(start_run(user))
    assert run.status == "completed", run.error_message
    child = Run.objects.get(parent=run)
    assert (child.status, child.error_message) == ("failed", FILES_REFUSED)
    assert model not in run.tool_calls.get().result


@pytest.mark.usefixtures("_no_directory")
def test_a_program_of_the_machines_own_user_plays_its_files(tmp_path: Path) -> None:
    model = script_file(tmp_path, [{"text": "I was played."}])
    agent = create_deep_agent(model={"provider": "scripted", "model": model}, sandbox=False)
    try:
        assert asyncio.run(agent.run("Go")) == "I was played."
    finally:
        agent.close()
