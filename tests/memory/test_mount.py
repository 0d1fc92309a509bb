"""The memory below /memory: tools that read it, and tools that must not write it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.middleware.decisions import decide
from agents.models import Agent, ApprovalRequest, Run, SeenFile, StateFile, Thread, ToolCall
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from agents.services.errors import InvalidRequest
from memory.models import MemoryFile, MemoryRevision
from tests.support.memory import remembered, skilled
from tests.support.runs import drive_to_end, make_agent, make_user, script_file, start_run

pytestmark = pytest.mark.django_db(transaction=True)

PATH = "knowledge/notes.md"
BOTH = pytest.mark.parametrize("sandbox", [False, True], ids=["state", "sandbox"])


def agent_that_calls(
    tmp_path: Path, user: User, *calls: tuple[str, dict[str, Any]], **fields: Any
) -> Agent:
    """Return an agent that makes one call a turn."""
    turns = [{"tool_calls": [{"name": name, "input": given}]} for name, given in calls]
    name = f"{fields.get('slug', 'tester')}.json"
    model = script_file(tmp_path, [*turns, {"text": "Done."}], name)
    return make_agent(user, model=model, **fields)


def driven(user: User, agent: Agent) -> tuple[Run, list[ToolCall]]:
    run = drive_to_end(start_run(user, agent=agent.slug), until=("waiting", "completed"))
    return run, list(ToolCall.objects.filter(run=run))


def content(call: ToolCall) -> Any:
    return json.loads(str(call.result_content))


def asked(tmp_path: Path, tool: str, given: dict[str, Any], **fields: Any) -> tuple[User, Run]:
    user = make_user()
    agent = agent_that_calls(tmp_path, user, (tool, given), **fields)
    remembered(agent, notes="Ada likes lists.\n")
    run, _ = driven(user, agent)
    return user, run


def stored(path: str = PATH) -> str | None:
    return MemoryFile.objects.filter(path=path).values_list("content", flat=True).first()


def assert_no_workspace_was_touched(run: Run) -> None:
    assert Thread.objects.get(pk=run.thread_id).workspace_generation == 0
    assert not StateFile.objects.exists()
    assert not SeenFile.objects.exists()


@pytest.mark.slow
@BOTH
def test_the_file_tools_read_the_memory_of_their_agent(tmp_path: Path, sandbox: bool) -> None:
    user = make_user()
    agent = agent_that_calls(
        tmp_path,
        user,
        ("ls", {"path": "/memory"}),
        ("ls", {"path": "/memory/knowledge/"}),
        ("read_file", {"path": "/memory/AGENTS.md"}),
        ("read_file", {"path": "/memory/skills/weekly-report.md"}),
        ("glob", {"pattern": "/memory/**/*.md"}),
        ("grep", {"pattern": "lik.s", "path": "/memory"}),
        ("read_file", {"path": "/memory/tools.json"}),
        ("read_file", {"path": "/memory/knowledge/other.md"}),
        sandbox=sandbox,
        system_prompt="You count.",
    )
    remembered(agent, notes="Ada likes lists.\n")
    skilled(agent)
    run, calls = driven(user, agent)
    assert run.status == "completed"
    assert [call.status for call in calls] == ["succeeded"] * 7 + ["failed"]
    top, knowledge, prompt, skill, matches, found, tools = map(content, calls[:7])
    names = ["AGENTS.md", "knowledge", "skills", "tools.json"]
    assert sorted(entry["name"] for entry in top["entries"]) == names
    assert knowledge["entries"] == [
        {"name": "notes.md", "type": "file", "path": f"/memory/{PATH}", "size": 17}
    ]
    assert "You count." in prompt["content"]
    assert "Begin with the numbers." in skill["content"]
    expected = ["AGENTS.md", PATH, "skills/weekly-report.md"]
    assert matches["matches"] == [f"/memory/{name}" for name in expected]
    assert [match["file"] for match in found["matches"]] == [f"/memory/{PATH}"]
    assert '"profile": "full"' in tools["content"]
    assert "no such file" in calls[7].result
    assert_no_workspace_was_touched(run)


@pytest.mark.slow_cases
@BOTH
@pytest.mark.parametrize(
    "spelling",
    [
        f"/memory/{PATH}",
        f"//memory//{PATH}",
        f"/./memory/./{PATH}",
        f"/memory/../memory/{PATH}",
        f"/sandbox/../memory/{PATH}",
        "/memory/skills/../knowledge/notes.md/",
        f"/sandbox/workspace/../../memory/{PATH}",
    ],
)
def test_every_spelling_of_a_write_waits_for_a_person(
    tmp_path: Path, sandbox: bool, spelling: str
) -> None:
    given = {"file_path": spelling, "content": "Ada likes tables."}
    user, run = asked(tmp_path, "write_file", given, sandbox=sandbox)
    request = ApprovalRequest.objects.get(run=run)
    assert (request.kind, stored()) == ("memory", "Ada likes lists.\n")
    decide_approval(request.id, DecisionRequest("approve"), by=user)
    assert stored() == "Ada likes tables."
    assert drive_to_end(run).status == "completed"
    assert_no_workspace_was_touched(run)
    assert MemoryRevision.objects.latest("number").reason == "written through write_file"


def test_a_relative_path_counts_from_the_working_directory(tmp_path: Path) -> None:
    given = {"path": "../../memory/knowledge/new.md", "content": "x"}
    _, run = asked(tmp_path, "write_file", given, sandbox=True)
    assert ApprovalRequest.objects.get(run=run).kind == "memory"


def test_an_edit_of_a_part_is_shown_completely_and_made_by_the_decision(tmp_path: Path) -> None:
    given = {"path": f"/memory/{PATH}", "old_string": "lists", "new_string": "tables"}
    user, run = asked(tmp_path, "edit_file", given)
    request = ApprovalRequest.objects.get(run=run)
    assert request.memory_edit is not None
    assert request.memory_edit.proposed_content == "Ada likes tables.\n"
    decide_approval(request.id, DecisionRequest("approve"), by=user)
    assert stored() == "Ada likes tables.\n"
    assert drive_to_end(run).status == "completed"
    assert_no_workspace_was_touched(run)


def test_no_setting_allows_a_write_to_the_memory_without_asking(tmp_path: Path) -> None:
    _, run = asked(
        tmp_path,
        "write_file",
        {"path": f"/memory/{PATH}", "content": "x"},
        interrupt_on={"write_file": False},
        approval_rules=[{"tool": "write_file", "action": "allow"}],
    )
    assert (run.status, stored()) == ("waiting", "Ada likes lists.\n")


@BOTH
@pytest.mark.parametrize(
    ("tool", "given", "word"),
    [
        (
            "edit_file",
            {"path": "/memory/AGENTS.md", "old_text": "a", "new_text": "b", "replace_all": True},
            "read-only",
        ),
        ("write_file", {"path": "/memory/AGENTS.md", "content": "Obey."}, "read-only"),
        ("write_file", {"path": "/memory/tools.json", "content": "{}"}, "read-only"),
        ("write_file", {"path": "/memory", "content": "x"}, "not a path of the memory"),
        ("write_file", {"path": "/memory/", "content": "x"}, "not a path of the memory"),
        ("write_file", {"path": "/memory/other/x.md", "content": "x"}, "not a path of the memory"),
        ("write_file", {"path": "/memory/knowledge/.x", "content": "x"}, "is invalid"),
        ("edit_file", {"path": f"/memory/{PATH}", "old_text": "no", "new_text": "b"}, "not found"),
        ("edit_file", {"path": "/memory/knowledge/no.md", "old_text": "a", "new_text": ""}, "no "),
    ],
)
def test_an_invalid_edit_is_refused_before_asking(
    tmp_path: Path, sandbox: bool, tool: str, given: dict[str, Any], word: str
) -> None:
    _, run = asked(tmp_path, tool, given, sandbox=sandbox)
    assert not ApprovalRequest.objects.exists()
    refused = ToolCall.objects.get()
    assert (run.status, refused.status, refused.code) == ("completed", "invalid", "memory_refused")
    assert word in refused.result
    assert_no_workspace_was_touched(run)


def test_an_agent_never_reads_the_memory_of_another(tmp_path: Path) -> None:
    user = make_user()
    other = make_agent(user, slug="other", system_prompt="Secret prompt.")
    remembered(other, plans="Secret plans.")
    calls = [
        ("read_file", {"path": "/memory/knowledge/plans.md"}),
        ("read_file", {"path": f"/memory/{other.pk}/knowledge/plans.md"}),
        ("read_file", {"path": "/memory/../memory/AGENTS.md"}),
        ("glob", {"pattern": "/memory/**"}),
        ("grep", {"pattern": "(?i)secret", "path": "/memory"}),
        ("read_memory", {"path": "knowledge/plans.md"}),
        ("list_memory", {"directory": "/"}),
    ]
    run, made = driven(user, agent_that_calls(tmp_path, user, *calls))
    assert run.status == "completed"
    assert [call.status for call in made[:2]] == ["failed", "failed"]
    assert not any("Secret" in call.result or "plans.md" in call.result for call in made[2:5])
    assert made[5].status == "failed"
    assert content(made[6]) == ["AGENTS.md", "tools.json"]


@pytest.mark.bubblewrap
def test_a_command_that_looks_for_the_memory_gets_a_hint(tmp_path: Path) -> None:
    user = make_user()
    call = ("execute", {"command": f"cat /memory/{PATH}"})
    agent = agent_that_calls(tmp_path, user, call, sandbox=True)
    remembered(agent, notes="Ada likes lists.\n")
    _, [made] = driven(user, agent)
    assert "Ada" not in made.result
    assert "read_file" in content(made)["note"]


def test_a_person_does_not_turn_another_call_into_an_edit_of_the_memory(tmp_path: Path) -> None:
    given = {"path": "/notes.md", "content": "x"}
    user, run = asked(tmp_path, "write_file", given, interrupt_on={"write_file": True})
    request = ApprovalRequest.objects.get(run=run)
    edited = {"path": "//memory/./knowledge/notes.md", "content": "x"}
    with pytest.raises(InvalidRequest, match="memory"):
        decide(request.id, DecisionRequest("edit", input=edited), by=user)
    assert ApprovalRequest.objects.get(run=run).status == "pending"
