"""The memory gives an agent's own skill only a name that is free, at each of its doors."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.doors.cli.local_user import local_user
from agents.models import Agent, ApprovalRequest, ToolCall
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from agents.services.errors import InvalidRequest
from memory.actions.changes import delete_file, restore_revision, write_file
from skills_app.actions.library import import_skill
from skills_app.library.package import PackageFile
from skills_app.library.read import read_package, require_package
from skills_app.library.scopes import agent_scope
from skills_app.models import Skill
from tests.agents.api.rows import client_for
from tests.support import site_writer
from tests.support.runs import drive_to_end, make_agent, make_user, script_file, start_run
from tests.support.skills import skill_text
from velproject.cli.main import run_command_line

pytestmark = pytest.mark.django_db(transaction=True)

BUILT_IN = "pdf-processing"
LOOKALIKE = "pdf-pr0cessing"


def path_of(name: str) -> str:
    return f"skills/{name}.md"


@pytest.fixture
def ann() -> User:
    return make_user("ann")


def shared(name: str) -> None:
    """Add a skill to the library, which each agent could have."""
    package, problems = read_package([PackageFile("SKILL.md", skill_text(name=name).encode())])
    admin = User.objects.create_superuser("librarian")
    import_skill(require_package(package, problems), by=admin, source="admin")


def own_skills(agent: Agent) -> list[str]:
    found = Skill.objects.filter(scope=agent_scope(agent.pk), is_deleted=False)
    return sorted(found.values_list("name", flat=True))


@pytest.mark.parametrize(
    ("name", "code"),
    [(BUILT_IN, "name_taken"), (LOOKALIKE, "lookalike"), ("ours", "duplicate")],
)
@pytest.mark.parametrize("built_in", [True, False])
def test_rest_refuses_a_name_that_is_not_free(
    ann: User, name: str, code: str, built_in: bool
) -> None:
    shared("ours")
    agent = make_agent(ann, builtin_skills=built_in)
    body = {"content": skill_text(name=name), "base_revision": 0}
    url = f"/api/v1/agents/{agent.pk}/memory/{path_of(name)}"
    answer = client_for(ann).put(url, body, format="json")
    assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert own_skills(agent) == []


@pytest.mark.parametrize("name", [BUILT_IN, LOOKALIKE])
@pytest.mark.parametrize("tool", ["write_memory", "write_file"])
def test_an_invalid_name_is_refused_before_asking(
    ann: User, tmp_path: Path, name: str, tool: str
) -> None:
    given: dict[str, Any] = {"path": path_of(name), "content": skill_text(name=name)}
    if tool == "write_memory":
        given["reason"] = "It is useful."
    else:
        given["path"] = f"/memory/{path_of(name)}"
    call = {"name": tool, "input": given}
    make_agent(ann, model=script_file(tmp_path, [{"tool_calls": [call]}, {"text": "Done."}]))
    run = drive_to_end(start_run(ann), until=("waiting", "completed"))
    assert run.status == "completed"
    assert "choose" in ToolCall.objects.get().result
    assert not ApprovalRequest.objects.exists()


def test_a_name_that_was_taken_while_a_request_waited_cannot_be_approved(ann: User) -> None:
    agent = make_agent(ann)
    request = site_writer.ask_memory(start_run(ann).pk, path_of("ours"), skill_text(name="ours"))
    shared("ours")
    with pytest.raises(InvalidRequest, match="choose another name") as refused:
        decide_approval(request, DecisionRequest("approve"), by=ann)
    assert refused.value.code == "duplicate"
    assert own_skills(agent) == []
    decide_approval(request, DecisionRequest("reject"), by=ann)


def test_the_commands_write_and_import_refuse_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VEL_LOG_LEVEL", "ERROR")
    agent = make_agent(local_user())
    text = skill_text(name=BUILT_IN)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert run_command_line(["memory", "write", agent.slug, path_of(BUILT_IN)]) == 2
    assert "choose another name" in capsys.readouterr().err
    folder = tmp_path / "memory"
    (folder / "skills").mkdir(parents=True)
    (folder / path_of(LOOKALIKE)).write_text(skill_text(name=LOOKALIKE))
    assert run_command_line(["memory", "import", agent.slug, str(folder)]) == 2
    assert "looks like pdf-processing" in capsys.readouterr().err
    assert own_skills(agent) == []


def test_an_own_skill_is_still_changed_and_deleted_and_its_free_name_restored(ann: User) -> None:
    agent = make_agent(ann)
    change: dict[str, Any] = {"by": ann, "source": "web"}
    path = path_of("ours")
    write_file(agent, path, skill_text(name="ours"), **change)
    write_file(agent, path, skill_text(name="ours", description="Better."), **change)
    delete_file(agent, path, **change)
    restore_revision(agent, path, 1, **change)
    assert own_skills(agent) == ["ours"]
    delete_file(agent, path, **change)
    shared("ours")
    with pytest.raises(InvalidRequest, match="choose another name"):
        restore_revision(agent, path, 1, **change)
    assert own_skills(agent) == []


def test_a_skill_with_a_name_taken_later_can_be_shown_and_deleted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VEL_LOG_LEVEL", "ERROR")
    agent = make_agent(local_user())
    change: dict[str, Any] = {"by": local_user(), "source": "web"}
    write_file(agent, path_of("ours"), skill_text(name="ours"), **change)
    shared("ours")
    assert run_command_line(["skills", "show", f"{agent.slug}:ours", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "ours"
    delete_file(agent, path_of("ours"), **change)
    assert own_skills(agent) == []
