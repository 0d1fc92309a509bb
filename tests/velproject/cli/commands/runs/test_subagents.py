"""`vel TASK` with an agent that delegates: its output, questions and stored subagents."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from tests.support.runs import wait_until
from tests.velproject.cli.commands.runs import team as team_program
from tests.velproject.command import Terminal, Vel, say
from tests.velproject.forked import PROGRAM

NONE = "file:/no/such/script.json"
WRITE = ("write_file", {"path": "/note.txt", "content": "hello"})


def team(vel: Vel, turns: list[dict[str, Any]], **subagents: list[dict[str, Any]]) -> list[str]:
    """Return the flags for an agent that plays `turns` with subagents that play their own turns."""
    rows = [
        {"name": name, "model": vel.script(*played, name=f"{name}.json")[-1] if played else NONE}
        for name, played in subagents.items()
    ]
    given = {
        "model": vel.script(*turns)[-1],
        "subagents": rows,
        "interrupt_on": {"write_file": True},
        "background_subagents": True,
    }
    create_team(vel, given)
    return ["--agent", "team"]


def create_team(vel: Vel, given: dict[str, Any]) -> None:
    """Create the agent `team` with the given values; `subagents` is a list of values of each."""
    done = vel(stdin=json.dumps(given), **{PROGRAM: team_program.__name__})
    assert done.returncode == 0, done.stderr


def tasks(*names: str) -> dict[str, Any]:
    given = [{"subagent": name, "task": f"Task of {name}"} for name in names]
    return say("I delegate.", ("parallel_tasks", {"tasks": given}))


@pytest.mark.slow
def test_the_work_of_subagents_is_shown_indented_with_their_names(vel: Vel) -> None:
    flags = team(
        vel,
        [tasks("finder", "finder", "broken"), say("All done.")],
        finder=[say("", ("ls", {"path": "/"})), say("Found\x1b[2J it.\n\nSecond line.")],
        broken=[],
    )
    done = vel(*flags, "go")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "I delegate.\nAll done.\n", "their words are not the agent's answer"
    lines = done.stderr.splitlines()
    assert sum(line.startswith("  ⤷ finder starts (run ") for line in lines) == 1
    assert "  finder │ • ls  /" in lines
    assert "  finder 2 │ • ls  /" in lines
    assert "  finder │ Found\\x1b[2J it." in lines
    assert "  ⤶ finder 2: completed" in lines
    assert "  ⤶ broken: failed" in lines, done.stderr
    assert "  waiting for 3 subagents" in lines
    began = next(n for n, line in enumerate(lines) if line.startswith("  ⤷ finder 2 starts"))
    ended = lines.index("  ⤶ finder 2: completed")
    own = [n for n, line in enumerate(lines) if line.startswith("  finder 2 │")]
    assert own
    assert began < min(own) <= max(own) < ended

    (shown,) = vel.rows("runs", "list")
    assert shown["subagents"] == 3
    told = vel("runs", "show", shown["id"])
    assert "  finder │ • ls  /" in told.stderr.splitlines()
    assert "Task of broken" in told.stderr.splitlines()[-1]
    assert told.stderr.splitlines()[-1].startswith("  broken  failed")
    events = vel.rows("runs", "show", shown["id"])
    assert len({event["run_id"] for event in events}) == 4
    assert events[-1]["type"] == "run.completed"


@pytest.mark.slow
def test_a_subagents_question_is_asked_at_the_terminal_like_its_parents(vel: Vel) -> None:
    flags = team(vel, [tasks("writer"), say("All done.")], writer=[say("", WRITE), say("Written.")])
    terminal = Terminal(vel, *flags, "go")
    shown = terminal.expect("Run it?")
    assert "Team › writer" in shown
    assert "Create /note.txt" in shown
    terminal.type("y\n")
    terminal.expect("writer │ Written.")
    terminal.expect("All done.")
    assert terminal.finish() == 0
    (request,) = vel.requests()
    assert request["decision"] == "approve"


@pytest.mark.slow
def test_each_of_several_is_asked_about_and_a_no_is_one_result(vel: Vel) -> None:
    flags = team(
        vel, [tasks("writer", "writer"), say("All done.")], writer=[say("", WRITE), say("Over.")]
    )
    terminal = Terminal(vel, *flags, "go")
    terminal.expect("Run it?")
    terminal.type("y\n")
    terminal.expect("Run it?")
    terminal.type("n\n")
    terminal.expect("Why not?")
    terminal.type("Once is enough.\n")
    terminal.expect("All done.")
    assert terminal.finish() == 0
    decisions = [row["decision"] for row in vel.requests()]
    assert sorted(decisions) == ["approve", "reject"]


@pytest.mark.slow
def test_a_subagent_in_the_background_is_asked_about_while_its_parent_works(vel: Vel) -> None:
    spawn = say("", ("spawn_subagent", {"agent": "writer", "task": "Write"}))
    flags = team(
        vel,
        [spawn, say("Still here.", delay=3.0), say("", ("ls", {"path": "/"}), delay=600)],
        writer=[say("", WRITE), say("Written.")],
    )
    terminal = Terminal(vel, *flags, "go")
    assert "Team › writer" in terminal.expect("Run it?")
    terminal.type("y\n")
    terminal.expect("Still here.")
    assert terminal.finish() == 0


@pytest.mark.slow
def test_without_a_terminal_the_others_continue_and_requests_stay_pending(vel: Vel) -> None:
    flags = team(
        vel,
        [tasks("writer", "slow"), say("All done.")],
        writer=[say("", WRITE), say("Written.")],
        slow=[say("Slept.", delay=1.0)],
    )
    done = vel(*flags, "go")
    assert done.returncode == 3, done.stderr
    assert "  ⤶ slow: completed" in done.stderr.splitlines()
    (request,) = vel.rows("approvals", "list")
    (run,) = vel.rows("runs", "list")
    assert (run["status"], run["wait_reason"]) == ("waiting", "children")
    decided = vel("approvals", "approve", request["id"], "--yes")
    assert f"runs resume {run['id']}" in decided.stdout
    refused = vel("runs", "resume", request["run"])
    assert refused.returncode == 2
    assert run["id"] in refused.stderr
    resumed = vel("runs", "resume", run["id"])
    assert resumed.returncode == 0, resumed.stderr
    assert resumed.stdout == "All done.\n"
    assert "  writer │ Written." in resumed.stderr.splitlines()
    assert "Slept." not in resumed.stderr, "old output is not shown again"


@pytest.mark.slow
def test_a_parent_of_a_dead_process_continues_with_its_subagents(vel: Vel) -> None:
    flags = team(vel, [tasks("slow", "slow"), say("All done.")], slow=[say("Slept.", delay=2.0)])
    terminal = Terminal(vel, *flags, "go")
    wait_until(lambda: _waits(vel), "a parked parent")
    terminal.signal(signal.SIGKILL)
    assert terminal.finish() == -signal.SIGKILL
    vel.execute("UPDATE agents_runclock SET lease_until = 1 WHERE lease_until IS NOT NULL")
    (run,) = vel.rows("runs", "list")
    resumed = vel("runs", "resume", run["id"])
    assert resumed.returncode == 0, resumed.stderr
    assert resumed.stdout.endswith("All done.\n")
    lines = resumed.stderr.splitlines()
    assert [lines.count(f"  {name} │ Slept.") for name in ("slow", "slow 2")] == [1, 1]


def _waits(vel: Vel) -> bool:
    query = "SELECT count(*) FROM agents_run WHERE wait_reason = 'children'"
    return bool(vel.value(query))


@pytest.mark.slow
def test_ctrl_c_ends_the_whole_family(vel: Vel) -> None:
    flags = team(vel, [tasks("slow", "slow"), say("All done.")], slow=[say("Slept.", delay=600)])
    terminal = Terminal(vel, *flags, "go")
    wait_until(lambda: _waits(vel), "a parked parent")
    terminal.type("\x03")
    assert terminal.finish() == 130
    left = "SELECT count(*) FROM agents_run WHERE status <> 'cancelled'"
    assert vel.value(left) == 0


@pytest.mark.slow
def test_in_json_each_event_names_its_run(vel: Vel) -> None:
    flags = team(vel, [tasks("finder"), say("All done.")], finder=[say("Found.")])
    done = vel(*flags, "--json", "go")
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    (child,) = {event["run_id"] for event in events} - {events[0]["run_id"]}
    seqs = [event["seq"] for event in events if event["run_id"] == child]
    assert seqs == list(range(1, len(seqs) + 1))
