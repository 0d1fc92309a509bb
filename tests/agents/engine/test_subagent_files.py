"""Files of subagents: shared with the parent, private, and read-only."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from agents.features.subagents.models import Subagent
from agents.models import Run, ToolCall, WorkspaceSnapshot
from agents.services.agent_definitions.actions import save_agent
from agents.services.files.thread_files import readable_files
from tests.sandbox.places import AS_ROOT, reachable_directory
from tests.support.runs import drive_to_end, make_agent, make_user, script_file, start_run

pytestmark = pytest.mark.django_db(transaction=True)

Call = tuple[str, dict[str, Any]]


def turn(*calls: Call) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "input": given} for name, given in calls]}


def family(
    tmp_path: Path, before: list[Call], child: list[Call], after: list[Call], **fields: Any
) -> tuple[Run, Run]:
    """Return an ended parent and its child; the parent calls `before`, delegates, calls `after`.

    `read_only` applies to the child, all other fields to the agent.
    """
    user = make_user()
    read_only = fields.pop("read_only", False)
    turns = [turn(*before)] if before else []
    turns += [turn(("task", {"subagent": "worker", "task": "Work."})), turn(*after), {"text": "."}]
    agent = make_agent(user, model=script_file(tmp_path, turns), **fields)
    play = script_file(tmp_path, [turn(item) for item in child] + [{"text": "Did it."}], "child")
    worker = Subagent(name="worker", description="Works.", model=play, read_only=read_only)
    save_agent(agent, related={"subagents": [worker]})
    run = drive_to_end(start_run(user))
    assert run.status == "completed", run.error_message
    made = Run.objects.get(parent=run)
    assert made.status == "completed", made.error_message
    return run, made


def texts(run: Run) -> list[str]:
    calls = ToolCall.objects.filter(run=run).order_by("turn", "position")
    return [str(call.result_content) for call in calls if call.tool != "task"]


def sh(command: str) -> Call:
    return ("execute", {"command": command})


@pytest.mark.slow
def test_files_are_shared_and_each_agent_has_its_own_workspace(tmp_path: Path) -> None:
    run, child = family(
        tmp_path,
        [sh("echo given > /sandbox/shared/in; echo mine > here; id -u")],
        [
            sh("cat /sandbox/shared/in; cat here; id -u; pwd"),
            sh("echo found > /sandbox/shared/out; echo its > own; echo end > /sandbox/outputs/o"),
            ("write_file", {"path": "/sandbox/shared/by_tool", "content": "tool"}),
        ],
        [sh("cat /sandbox/shared/out /sandbox/shared/by_tool /sandbox/outputs/o; ls")],
        sandbox=True,
    )
    first, after = texts(run)[0], texts(run)[-1]
    seen = texts(child)[0]
    assert "given" in seen
    assert "mine" not in seen
    assert first.split('"stdout":"')[1][:5] in seen  # the same host account
    assert all(word in after for word in ("found", "tool", "end"))
    assert "own" not in after
    assert "here" in after
    # Both runs show the shared files.
    for thread in (run.thread, child.thread):
        files = readable_files(thread, in_workspace=True)
        assert files.read_bytes("/sandbox/shared/out", 100) == b"found\n"
    # The history of the child's changes has only the child's own workspace.
    assert {row.thread_id for row in WorkspaceSnapshot.objects.all()} == {
        run.thread_id,
        child.thread_id,
    }


@pytest.mark.slow
def test_a_read_only_subagent_sees_its_parents_workspace_and_changes_nothing(
    tmp_path: Path,
) -> None:
    attempts = [
        "echo x >> here",
        "echo x > /sandbox/shared/x",
        "echo x > /sandbox/outputs/x",
        "rm -f here; mv here there; ln -s here link; mkdir made",
        "chmod 777 here; touch here",
        "mount -o remount,rw /sandbox/workspace; echo x > here",
        "unshare -rm sh -c 'mount -o remount,rw,bind /sandbox/workspace; echo x > here'",
    ]
    run, child = family(
        tmp_path,
        [sh("echo mine > here")],
        [
            sh("cat here"),
            *(sh(attempt) for attempt in attempts),
            ("write_file", {"path": "/sandbox/shared/x", "content": "x"}),
            ("edit_file", {"path": "here", "old_text": "mine", "new_text": "x"}),
            ("read_file", {"path": "here"}),
        ],
        [sh("cat here; ls -la . /sandbox/shared /sandbox/outputs")],
        sandbox=True,
        read_only=True,
    )
    seen = texts(child)
    assert "mine" in seen[0]
    assert "mine" in seen[-1]
    assert all("read-only" in text.lower() for text in seen[8:10]), seen[8:10]
    after = texts(run)[-1]
    assert "mine" in after
    for name in ("x\\n", "there", "link", "made"):
        assert f" {name}" not in after
    assert not WorkspaceSnapshot.objects.filter(thread=child.thread).exists()


@pytest.mark.slow
def test_without_a_sandbox_the_rows_are_the_family_s(tmp_path: Path) -> None:
    run, child = family(
        tmp_path,
        [("write_file", {"path": "/sandbox/shared/in", "content": "given"})],
        [
            ("read_file", {"path": "/sandbox/shared/in"}),
            ("write_file", {"path": "/sandbox/shared/out", "content": "found"}),
        ],
        [("read_file", {"path": "/sandbox/shared/out"})],
    )
    assert "given" in texts(child)[0]
    assert "found" in texts(run)[-1]


@pytest.mark.slow
def test_without_a_sandbox_a_read_only_subagent_writes_no_row(tmp_path: Path) -> None:
    run, child = family(
        tmp_path,
        [("write_file", {"path": "a", "content": "given"})],
        [("write_file", {"path": "a", "content": "bad"}), ("read_file", {"path": "a"})],
        [("read_file", {"path": "a"})],
        read_only=True,
    )
    assert "read-only" in texts(child)[0]
    assert "given" in texts(child)[1]
    assert "given" in texts(run)[-1]


def test_a_caller_s_own_directory_is_the_workspace_of_the_whole_family(tmp_path: Path) -> None:
    user = make_user()
    child = [turn(sh("echo done > made_by_child")), {"text": "Did it."}]
    turns = [turn(("task", {"subagent": "worker", "task": "Work."})), turn(sh("ls")), {"text": "."}]
    agent = make_agent(user, model=script_file(tmp_path, turns), sandbox=True)
    worker = Subagent(name="worker", description="W.", model=script_file(tmp_path, child, "child"))
    save_agent(agent, related={"subagents": [worker]})
    with reachable_directory() as place:
        own = place / "project"
        own.mkdir()
        if AS_ROOT:
            os.chown(own, 65534, 65534)
        run = drive_to_end(start_run(user, workspace_path=str(own)))
        assert run.status == "completed", run.error_message
        assert "made_by_child" in texts(run)[-1]
        assert (own / "made_by_child").read_text() == "done\n"
