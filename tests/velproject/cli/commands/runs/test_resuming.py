"""`vel --continue` and `vel --resume`: the sessions of one person, in a real terminal."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.velproject.command import Terminal, Vel, new_vel

ECHO = ("--provider", "scripted", "--model", "echo")
HOSTILE = "\x1b]0;title\x07[bold red]second[/]"


@pytest.fixture(scope="module")
def with_two_sessions() -> Iterator[Vel]:
    """Yield a `vel` with two sessions. Copy its data instead of changing them."""
    with new_vel() as first:
        for task in ("first task", HOSTILE):
            assert first(*ECHO, task).returncode == 0
        yield first


@pytest.fixture
def two(vel: Vel, with_two_sessions: Vel) -> list[str]:
    """Give `vel` two sessions, and return their threads, the older first."""
    shutil.copytree(with_two_sessions.data, vel.data, symlinks=True, dirs_exist_ok=True)
    return [str(row["id"]) for row in vel.stored("SELECT id FROM agents_thread ORDER BY id")]


def threads_of_runs(vel: Vel) -> list[object]:
    """Return the threads of the runs, the newest first."""
    return [row["thread_id"] for row in vel.runs()]


def test_continue_takes_the_session_that_was_used_last(vel: Vel, two: list[str]) -> None:
    assert vel(*ECHO, "--resume", two[0], "more").returncode == 0
    done = vel(*ECHO, "--continue", "and more")
    assert done.returncode == 0, done.stderr
    assert "Continuing: first task" in done.stderr
    assert threads_of_runs(vel)[0] == two[0]
    assert vel.count("agents_thread") == 2


def test_continue_prefers_a_session_of_the_directory(vel: Vel, two: list[str]) -> None:
    vel.execute(f"UPDATE agents_thread SET workspace_path = '{vel.data}' WHERE id = '{two[0]}'")
    terminal = Terminal(vel, *ECHO, "--continue")
    terminal.expect("Continuing: first task")
    terminal.expect("\x1b[?2004h")
    terminal.type("\x04")
    assert terminal.finish() == 0


def test_a_run_names_its_session(vel: Vel, two: list[str]) -> None:
    run = str(vel.runs()[1]["id"])
    assert vel(*ECHO, "--resume", run, "more").returncode == 0
    assert threads_of_runs(vel)[0] == two[0]


def test_a_session_of_another_person_is_refused_and_not_offered(vel: Vel, two: list[str]) -> None:
    run = str(vel.runs()[0]["id"])
    vel.execute("UPDATE auth_user SET is_superuser = 1")  # may read all runs
    for table in ("agents_thread", "agents_run"):
        vel.execute(f"UPDATE {table} SET owner_id = 999")
    for wanted in (two[1], run):
        done = vel(*ECHO, "--resume", wanted, "more")
        assert done.returncode == 2
        assert f"There is no session '{wanted}' of yours." in done.stderr
    for flag in ("--continue", "--resume"):
        done = vel(*ECHO, flag)
        assert "You have no session to continue" in done.stderr
    assert len(vel.runs()) == 2


@pytest.mark.parametrize(
    "more",
    [
        ("--resume", "x"),
        ("--session", "k"),
        ("--agent", "a"),
        ("--protect", "x"),
        ("--skills", "x"),
        ("--context", "a=b"),
    ],
)
def test_options_that_a_session_keeps_are_refused(vel: Vel, more: tuple[str, str]) -> None:
    done = vel("--continue", *more, "task")
    assert done.returncode == 2
    assert "cannot be combined" in done.stderr
    assert vel.runs() == []


def test_without_a_terminal_resume_needs_an_id(vel: Vel, two: list[str]) -> None:
    done = vel(*ECHO, "--resume")
    assert done.returncode == 2
    assert "needs a terminal" in done.stderr


def test_the_list_is_searched_and_shows_titles_as_text(vel: Vel, two: list[str]) -> None:
    terminal = Terminal(vel, *ECHO, "--resume")
    terminal.expect("\\x1b]0;title\\x07[bold red]second[/]")
    terminal.expect("Esc leaves")
    terminal.type("FIRST")
    terminal.expect("1 of 2")
    terminal.type("\r")
    terminal.expect("Continuing: first task")
    terminal.expect("\x1b[?2004h")
    terminal.type("more\r")
    terminal.expect("tokens in")
    terminal.expect("\x1b[?2004h")
    terminal.type("\x04")
    assert terminal.finish() == 0
    assert threads_of_runs(vel)[0] == two[0]
    assert "\x1b]0;title" not in terminal.shown


@pytest.mark.slow_cases
@pytest.mark.parametrize("key", ["\x1b", "\x03"])
def test_a_person_can_leave_the_list(vel: Vel, two: list[str], key: str) -> None:
    terminal = Terminal(vel, *ECHO, "--resume")
    terminal.expect("Esc leaves")
    terminal.type(key)
    terminal.expect("No session was chosen")
    assert terminal.finish() == 2
    assert len(vel.runs()) == 2


def test_a_simple_terminal_gets_numbers(vel: Vel, two: list[str]) -> None:
    terminal = Terminal(vel, *ECHO, "--resume", TERM="dumb")
    terminal.expect("Number: ")
    terminal.type("2\n")
    terminal.expect("Continuing: first task")
    terminal.expect("\n> ")
    terminal.type("\x04")
    assert terminal.finish() == 0
    assert "\x1b" not in terminal.shown


def test_another_agents_session_refuses_flags_that_would_change_it(vel: Vel) -> None:
    assert vel(*ECHO, "first").returncode == 0
    vel.execute("UPDATE auth_user SET is_superuser = 1")
    assert vel("agents", "new", "report-writer").returncode == 0
    vel.execute(
        "UPDATE agents_thread SET agent_id = "
        "(SELECT id FROM agents_agent WHERE slug = 'report-writer')"
    )
    done = vel(*ECHO, "--continue", "more")
    assert done.returncode == 2
    assert "has its own settings. Leave out --provider, --model." in done.stderr


def test_a_session_without_a_sandbox_names_the_command_that_continues_it(vel: Vel) -> None:
    assert vel(*ECHO, "--no-sandbox", "first").returncode == 0
    done = vel(*ECHO, "--continue", "more")
    assert done.returncode == 2
    thread = str(vel.value("SELECT id FROM agents_thread"))
    assert done.stderr.endswith(
        "The files of that session are in the database, without a sandbox. "
        f"To continue it: vel --resume {thread} --no-sandbox\n"
    )
    assert vel(*ECHO, "--resume", thread, "--no-sandbox", "more").returncode == 0
    assert vel(*ECHO, "second").returncode == 0
    done = vel(*ECHO, "--continue", "--no-sandbox", "more")
    assert done.returncode == 2
    assert "The files of that session are in a sandbox." in done.stderr
    assert "--no-sandbox" not in done.stderr
