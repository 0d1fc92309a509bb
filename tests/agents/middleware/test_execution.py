"""Commands and files of one thread, in the real sandbox."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents.models import ToolCall
from tests.support.runs import drive_to_end, make_agent, make_user, script_file, start_run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.bubblewrap]


def ran(tmp_path: Path, *calls: tuple[str, dict[str, Any]], **agent: Any) -> list[ToolCall]:
    user = make_user()
    turns = [{"tool_calls": [{"name": name, "input": given}]} for name, given in calls]
    make_agent(
        user, sandbox=True, model=script_file(tmp_path, [*turns, {"text": "Done."}]), **agent
    )
    run = drive_to_end(start_run(user))
    assert run.status == "completed", run.error_message
    return list(ToolCall.objects.filter(run=run))


def content(call: ToolCall) -> Any:
    return json.loads(str(call.result_content))


def test_files_and_commands_see_the_same_paths(tmp_path: Path) -> None:
    calls = ran(
        tmp_path,
        ("write_file", {"path": "notes/a.txt", "content": "alpha\nbeta\n"}),
        ("execute", {"command": "cat /sandbox/workspace/notes/a.txt; echo out > ../outputs/b"}),
        ("read_file", {"path": "/sandbox/outputs/b"}),
        ("execute_python", {"code": "print(open('notes/a.txt').read().upper())"}),
        ("edit_file", {"path": "notes/a.txt", "old_text": "beta", "new_text": "gamma"}),
        ("grep", {"pattern": "gam+a"}),
        ("glob", {"pattern": "**/*.txt"}),
    )
    assert [call.status for call in calls] == ["succeeded"] * 7, [call.result for call in calls]
    assert content(calls[1]) == {
        "success": True,
        "exit_code": 0,
        "stdout": "alpha\nbeta\n",
    }
    assert "out" in content(calls[2])["content"]
    assert "ALPHA" in content(calls[3])["stdout"]
    assert content(calls[5])["matches"][0]["file"].endswith("/notes/a.txt")
    assert content(calls[6])["count"] == 1


def test_a_command_that_fails_is_an_answer_and_one_that_hangs_is_stopped(tmp_path: Path) -> None:
    calls = ran(
        tmp_path,
        ("execute", {"command": "echo wrong >&2; exit 3"}),
        ("execute", {"command": "sleep 600", "timeout": 1}),
    )
    assert (calls[0].status, content(calls[0])) == (
        "succeeded",
        {"success": False, "exit_code": 3, "stdout": "", "stderr": "wrong\n"},
    )
    assert (calls[1].status, calls[1].code) == ("failed", "timeout")
    assert content(calls[1])["exit_code"] == 124
    assert content(calls[1])["timed_out"] is True


@pytest.mark.slow
def test_the_agents_own_time_limit_is_the_default(tmp_path: Path) -> None:
    [call] = ran(tmp_path, ("execute", {"command": "sleep 600"}), command_timeout=1)
    assert call.code == "timeout"


def test_commands_have_no_network_and_no_environment(tmp_path: Path) -> None:
    connect = "import socket; socket.create_connection(('1.1.1.1', 53), 2)"
    calls = ran(
        tmp_path,
        ("execute_python", {"code": connect}),
        ("execute", {"command": "env; cat /proc/1/environ"}),
    )
    assert content(calls[0])["exit_code"] == 1
    assert "DJANGO" not in content(calls[1])["stdout"]
    assert "VEL_" not in content(calls[1])["stdout"]


def test_the_sandbox_only_profile_gives_one_output(tmp_path: Path) -> None:
    calls = ran(
        tmp_path,
        ("execute_in_sandbox", {"command": "pwd; ls /sandbox; echo oops >&2"}),
        ("execute_in_sandbox", {"command": "exit 4", "timeout_seconds": 5}),
        ("execute_in_sandbox", {"command": "sleep 60", "timeout_seconds": 1}),
        ("read_file", {"path": "x"}),
        profile="sandbox_only",
    )
    text = str(calls[0].result_content)
    assert text.startswith("/sandbox/workspace\n")
    assert "user_uploads" in text
    assert text.endswith("oops")
    assert "[exit code 4]" in str(calls[1].result_content)
    assert "timed out after 1 s; exit code 124" in str(calls[2].result_content)
    assert calls[3].status == "invalid"


def test_paths_outside_are_refused_with_the_right_one(tmp_path: Path) -> None:
    calls = ran(
        tmp_path,
        ("read_file", {"path": "/etc/passwd"}),
        ("write_file", {"path": "/sandbox/skills/x", "content": "y"}),
        ("execute", {"command": "ln -s /etc/passwd link"}),
        ("read_file", {"path": "link"}),
    )
    assert [call.status for call in calls] == ["failed", "failed", "succeeded", "failed"]
    assert "/sandbox/workspace" in calls[0].result
    assert "read-only" in calls[1].result
    assert "root:" not in calls[3].result


@pytest.mark.slow
def test_two_threads_do_not_see_each_others_files(tmp_path: Path) -> None:
    user = make_user()
    write = {"name": "execute", "input": {"command": "echo secret > mine; id -u"}}
    make_agent(
        user, sandbox=True, model=script_file(tmp_path, [{"tool_calls": [write]}, {"text": "."}])
    )
    first = drive_to_end(start_run(user))
    look = {"name": "execute", "input": {"command": f"ls -R /sandbox; cat {tmp_path}/*; ls /var"}}
    make_agent(
        user,
        slug="other",
        sandbox=True,
        model=script_file(tmp_path, [{"tool_calls": [look]}, {"text": "."}], "other.json"),
    )
    second = drive_to_end(start_run(user, agent="other"))
    assert first.thread_id != second.thread_id
    assert "mine" not in ToolCall.objects.get(run=second).result
