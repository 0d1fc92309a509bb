"""The output and the exit code of `vel TASK`."""

from __future__ import annotations

import json
import os
import pwd
import stat
import subprocess
from pathlib import Path

import pytest

from tests.velproject.command import Vel, say

ECHO = ["--provider", "scripted", "--model", "echo"]


@pytest.mark.slow
def test_the_answer_is_on_standard_output_and_all_else_on_standard_error(vel: Vel) -> None:
    flags = vel.script(say("Looking.", ("ls", {"path": "."})), say("Nothing here."))
    done = vel(*flags, "look around")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Looking.\nNothing here.\n"
    assert "• ls" in done.stderr
    assert "Offline: a scripted model answers" in done.stderr
    assert "tokens in" in done.stderr


@pytest.mark.slow
def test_without_a_key_the_offline_script_answers_and_names_itself(vel: Vel) -> None:
    done = vel(*ECHO, "good morning")
    assert done.returncode == 0, done.stderr
    assert "good morning" in done.stdout
    assert "No language model is used" in done.stderr


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_a_command_runs_in_the_sandbox_and_its_output_is_shown_in_short(vel: Vel) -> None:
    flags = vel.script(say("", ("execute", {"command": "seq 100 140"})), say("Counted."))
    done = vel(*flags, "count")
    assert done.returncode == 0, done.stderr
    assert "100" in done.stderr
    assert "… 35 more lines" in done.stderr
    assert "139" not in done.stderr


@pytest.mark.slow
def test_the_task_comes_from_standard_input_for_a_dash(vel: Vel) -> None:
    done = vel(*ECHO, "-", stdin="from a pipe\n")
    assert done.returncode == 0, done.stderr
    assert "from a pipe" in done.stdout


@pytest.mark.slow
def test_lines_of_a_pipe_are_turns_of_one_session(vel: Vel) -> None:
    done = vel(*ECHO, stdin="first\nsecond\nQuit\nnever\n")
    assert done.returncode == 0, done.stderr
    assert "first" in done.stdout
    assert "second" in done.stdout
    assert "never" not in done.stdout
    runs = vel.runs()
    assert len(runs) == 2
    assert runs[0]["thread_id"] == runs[1]["thread_id"]


@pytest.mark.slow
def test_clear_starts_a_new_session(vel: Vel) -> None:
    done = vel(*ECHO, stdin="first\nCLEAR\nsecond\nEXIT\nnever\n")
    assert done.returncode == 0, done.stderr
    runs = vel.runs()
    assert len(runs) == 2
    assert runs[0]["thread_id"] != runs[1]["thread_id"]


@pytest.mark.slow
def test_a_session_key_continues_its_session(vel: Vel) -> None:
    for message in ("one", "two"):
        assert vel(*ECHO, "--session", "work", message).returncode == 0
    runs = vel.rows("runs", "list")
    assert {run["session"] for run in runs} == {"work"}
    assert [run["task"] for run in runs] == ["two", "one"]
    listed = vel("runs", "list").stdout.splitlines()
    assert [line.split()[-1] for line in listed[1:]] == ["two", "one"]
    assert runs[0]["thread"] == runs[1]["thread"]


@pytest.mark.slow
def test_json_prints_only_one_event_on_each_line(vel: Vel) -> None:
    done = vel(*ECHO, "--json", "hello \x9b2J")
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [set(event) for event in events] == [{"run_id", "seq", "type", "ts", "data"}] * len(
        events
    )
    assert [event["seq"] for event in events] == sorted(event["seq"] for event in events)
    assert events[0]["type"] == "run.started"
    assert events[-1]["type"] == "run.completed"
    assert done.stdout.isascii()


@pytest.mark.slow
def test_files_go_to_the_workspace_that_is_named(vel: Vel) -> None:
    flags = vel.script(
        say("", ("write_file", {"path": "note.txt", "content": "hi"})), say("Written.")
    )
    (vel.data / "project").mkdir()
    if os.geteuid() == 0:
        os.chown(vel.data / "project", 65534, 65534)
    done = vel(*flags, "--workspace", "project", "write a note")
    assert done.returncode == 0, done.stderr
    assert (vel.data / "project" / "note.txt").read_text() == "hi"
    assert f"Files: {vel.data / 'project'}" in done.stderr


@pytest.mark.slow
def test_without_a_workspace_it_prints_the_path_of_the_files(vel: Vel) -> None:
    flags = vel.script(
        say("", ("write_file", {"path": "note.txt", "content": "hi"})), say("Written.")
    )
    done = vel(*flags, "write a note")
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("Files: ")]
    assert (Path(line.removeprefix("Files: ")) / "note.txt").read_text() == "hi"


def test_a_workspace_that_does_not_exist_is_refused(vel: Vel) -> None:
    done = vel(*ECHO, "--workspace", "no/such", "write a note")
    assert done.returncode == 2
    assert f"{vel.data / 'no/such'} does not exist" in done.stderr
    assert not (vel.data / "no").exists()
    assert vel.count("agents_run") == 0


@pytest.mark.root
def test_a_directory_of_roots_is_refused_before_a_model_is_asked(vel: Vel) -> None:
    (vel.data / "mine").mkdir()
    done = vel(*ECHO, "--workspace", "mine", "write a note")
    assert done.returncode == 2
    assert "chown -R nobody" in done.stderr
    assert vel.count("agents_run") == 0


@pytest.mark.root
@pytest.mark.bubblewrap
def test_sandboxes_of_root_reach_a_new_data_directory_with_any_umask(vel: Vel) -> None:
    script = vel.script(say("", ("execute", {"command": "echo $((20 * 21))"})), say("Done."))
    place = vel.data / "new" / "data"
    done = subprocess.run(
        vel.command(*script, "go"),
        cwd=vel.data,
        env=vel.env(VEL_DATA_DIR=str(place)),
        capture_output=True,
        text=True,
        check=False,
        umask=0o077,
    )
    assert done.returncode == 0, done.stderr
    assert "420" in done.stderr
    assert stat.S_IMODE(place.stat().st_mode) == 0o711


@pytest.mark.slow
def test_persist_keeps_everything_in_the_named_file_and_hints_name_it(vel: Vel) -> None:
    place = vel.data / "my runs?.sqlite3"
    flags = vel.script(say("", ("ls", {"path": "."})), say("Done."))
    done = vel(*flags, "--persist", str(place), "--approve", "ls", "look")
    assert done.returncode == 3, done.stderr
    assert f"--persist '{place}'" in done.stderr
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert len(vel.rows("runs", "list", "--persist", str(place))) == 1
    assert vel.rows("runs", "list") == []


@pytest.mark.slow
def test_each_start_pins_its_own_flags(vel: Vel) -> None:
    looks = vel.script(say("", ("ls", {"path": "."})), say("Done."))
    assert vel(*looks, "--approve", "ls", "look").returncode == 3
    assert vel(*looks, "look").returncode == 0
    assert [run["status"] for run in vel.runs()] == ["completed", "waiting"]


@pytest.mark.slow
def test_a_run_that_reaches_its_limit_of_turns_ends_with_4(vel: Vel) -> None:
    look = say("Again.", ("ls", {"path": "."}))
    done = vel(*vel.script(look, look, look), "--max-turns", "2", "look for ever")
    assert done.returncode == 4, done.stderr
    assert "limit" in done.stderr


@pytest.mark.slow
def test_a_run_that_reaches_its_time_limit_ends_with_4(vel: Vel) -> None:
    done = vel(*vel.script(say("slow", delay=60.0)), "--timeout", "1", "dawdle")
    assert done.returncode == 4, done.stderr
    assert "1 seconds" in done.stderr


@pytest.mark.slow
def test_a_run_that_fails_ends_with_1(vel: Vel) -> None:
    done = vel("--provider", "scripted", "--model", "no-such-script", "go")
    assert done.returncode == 1
    assert "no script is called" in done.stderr


@pytest.mark.slow
def test_the_owner_is_the_account_of_this_machine_without_rights(vel: Vel) -> None:
    assert vel(*ECHO, "hi", LOGNAME="somebody", USER="somebody").returncode == 0
    (run,) = vel.rows("runs", "list")
    assert run["owner"] == pwd.getpwuid(os.getuid()).pw_name
