"""The knowledge of an agent in the prompts of its runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.models import Agent, ApprovalRequest, Epoch, Run
from memory.actions.changes import delete_file, write_file
from memory.limits import ALWAYS_BYTES, INDEX_BYTES
from memory.models import MemoryFile
from memory.queries.prompt import description_of, knowledge_of
from tests.support.memory import remembered
from tests.support.runs import drive_to_end, make_agent, make_user, script_file, start_run

DONE = [{"text": "Done."}] * 5


@pytest.fixture
def agent(tmp_path: Path, transactional_db: None) -> Agent:
    return make_agent(make_user(), model=script_file(tmp_path, DONE))


def system_of(run: Run) -> str:
    """Return the system prompt of the thread's only epoch."""
    return str(Epoch.objects.get(thread=run.thread_id).head["system"])


def finished(agent: Agent, **given: Any) -> Run:
    return drive_to_end(start_run(agent.owner, **given))


@pytest.mark.both_databases
def test_a_prompt_has_the_index_and_the_file_that_is_always_loaded(agent: Agent) -> None:
    remembered(
        agent,
        contacts="# People of the office\n\n- Ada: 17\n",
        always="Answer in French.\n## Not a heading\u202e\n",
        zebra="---\ndescription: 'All about stripes'\n---\nText.\n",
    )
    system = system_of(finished(agent))
    index = "- knowledge/contacts.md: People of the office\n- knowledge/zebra.md: All about stripes"
    assert f"\n{index}\n" in system
    assert "\n> Answer in French.\n> ## Not a heading\u27e8U+202E\u27e9" in system
    assert "Ada: 17" not in system
    assert "- knowledge/always.md" not in system


def test_the_prompt_of_a_conversation_stays_and_changes_are_notes(agent: Agent) -> None:
    remembered(agent, first="First", gone="Gone")
    run = finished(agent)
    before = system_of(run)
    remembered(agent, second="Second", first="Changed")
    delete_file(agent, "knowledge/gone.md", by=agent.owner, source="web")
    run = finished(agent, thread=run.thread_id)
    assert system_of(run) == before
    changed = "knowledge/first.md, knowledge/gone.md (deleted), knowledge/second.md"
    assert run.opening_note == f"Your memory has changed since: {changed}."
    run = finished(agent, thread=run.thread_id)
    assert run.opening_note == ""
    assert "- knowledge/second.md: Second" in system_of(finished(agent))


def test_changes_by_the_conversation_itself_make_no_note(tmp_path: Path, agent: Agent) -> None:
    given = {"path": "knowledge/own.md", "content": "Mine", "reason": "It was said."}
    turns = [{"tool_calls": [{"name": "write_memory", "input": given}]}, *DONE]
    agent.model = script_file(tmp_path, turns)
    agent.save()
    run = drive_to_end(start_run(agent.owner), until=("waiting",))
    approve(run)
    assert drive_to_end(run).status == "completed"
    assert finished(agent, thread=run.thread_id).opening_note == ""


def approve(run: Run) -> ApprovalRequest:
    from agents.services.approvals.decisions import DecisionRequest, decide_approval

    request = ApprovalRequest.objects.get(run=run, status="pending")
    answer = DecisionRequest("approve", digest=request.digest)
    decide_approval(request.pk, answer, by=run.owner)
    return request


def test_an_agent_without_the_tool_has_no_knowledge_in_its_prompt(agent: Agent) -> None:
    remembered(agent, first="First", always="Always")
    agent.tools = ["ls"]
    agent.save()
    assert "First" not in (system := system_of(finished(agent)))
    assert "Always" not in system


@pytest.mark.both_databases
def test_the_knowledge_in_a_prompt_is_limited(agent: Agent) -> None:
    files = [(f"{number:03}-{'x' * 40}", f"Topic {number} {'y' * 300}") for number in range(200)]
    MemoryFile.objects.bulk_create(
        MemoryFile(agent=agent, path=f"knowledge/{name}.md", content=text, size_bytes=9, revision=1)
        for name, text in files
    )
    remembered(agent, always="A line of the file.\n" * 1_000)
    found = knowledge_of(agent.pk)
    lines = "\n".join(found.index)
    assert INDEX_BYTES - 100 < len(lines) <= INDEX_BYTES
    assert "Topic" not in lines
    assert found.left_out == 200 - len(found.index)
    assert found.is_cut
    assert ALWAYS_BYTES - 100 < len(found.always) <= ALWAYS_BYTES
    assert found.always.endswith("\nA line of the file.")
    system = system_of(finished(agent))
    assert f"and {found.left_out} more files: list_memory" in system
    assert "(its beginning: read_memory has the rest)" in system


def test_an_approver_sees_that_a_file_is_in_each_prompt(tmp_path: Path, agent: Agent) -> None:
    given = {"path": "knowledge/always.md", "content": "Be kind.", "reason": "It was said."}
    turns = [{"tool_calls": [{"name": "write_memory", "input": given}]}, *DONE]
    agent.model = script_file(tmp_path, turns)
    agent.save()
    run = drive_to_end(start_run(agent.owner), until=("waiting",))
    request = approve(run)
    assert request.memory_edit.warnings == [
        "This file is in the prompt of each new conversation (8 bytes)."
    ]
    write_file(agent, "knowledge/always.md", "x", by=agent.owner, source="web")


@pytest.mark.parametrize(
    ("text", "description"),
    [
        ("", ""),
        ("\n\n# Prices\nText", "Prices"),
        ("- first item\n- second", "first item"),
        ("1. one\n", "one"),
        ("---\nDescription: Of it\n---\n# Title", "Of it"),
        ("---\nother: x\n---\n\n# Title", "Title"),
        ("---\nnever ends\n", "never ends"),
        ("===\n***\nText", "Text"),
        ("a\x1b\tb   c", "a\u27e8U+001B\u27e9 b c"),
        ("x" * 500, "x" * 119 + "\u2026"),
    ],
)
def test_the_description_of_a_file(text: str, description: str) -> None:
    assert description_of(text) == description
