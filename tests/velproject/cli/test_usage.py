"""Bad usage, and commands that answer without loading Django."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.velproject.command import DEADLINE, Vel


def one_line_of(done: subprocess.CompletedProcess[str]) -> str:
    assert "Traceback" not in done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("vel: ")
    return line


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("-h",),
        ("--version",),
        ("runs", "list", "--help"),
        ("up", "--help"),
        ("doctor", "--help"),
        ("runs", "list", "--bogus"),
        ("--provider", "nobody", "task"),
        ("",),
    ],
)
def test_help_and_bad_usage_do_not_import_django_or_the_sdk(
    vel: Vel, arguments: tuple[str, ...]
) -> None:
    program = (
        "import sys\n"
        "from velproject.cli.main import run_command_line\n"
        "run_command_line(sys.argv[1:])\n"
        "heavy = {'django', 'anthropic', 'rich', 'twisted'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run(
        [vel.command()[0], "-P", "-c", program, *arguments],
        capture_output=True,
        text=True,
        env=vel.env(),
        timeout=DEADLINE,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_help_shows_the_flags_of_a_task_and_the_commands(vel: Vel) -> None:
    shown = vel("--help").stdout
    for word in ("--provider", "--workspace", "--approve", "doctor", "approvals", "up"):
        assert word in shown


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("",), "empty"),
        (("   ",), "empty"),
        (("doctr",), "Did you mean `vel doctor`"),
        (("two", "tasks"), "unexpected extra argument"),
        (("--provider", "nobody", "task"), "'nobody' is not one of"),
        (("--max-turns", "0", "task"), "0 is not in the range"),
        (("--max-cost", "free", "task"), "'free' is not an amount"),
        (("--database", "nonsense", "task"), "NAME=URL"),
        (("--database", "shop=no-url", "task"), "expected a URL"),
        (("--database", "shop=sqlite:///shop.db", "task"), "The file does not exist"),
        (("--agent", "demo", "--model", "x", "task"), "--model cannot be combined with --agent"),
        (("--skills", "/nowhere", "task"), "/nowhere"),
        (("--workspace", "/etc/passwd", "task"), "is a file"),
        (("--workspace", "/etc", "task"), "could then rewrite programs"),
        (("--workspace", "/proc/sys/made", "task"), "never shows"),
        (("--persist", "/nowhere/at/all.db", "task"), "the directory /nowhere/at does not exist"),
        (("--persist", "/tmp", "task"), "is a directory"),
        (("approvals", "decide", "x", "edit"), "--input"),
        (("runs", "list", "--status", "sleepy"), "expected one of"),
        (("--approve", "lss", "task"), "no tool 'lss'"),
        (("--agent", "nobody", "task"), "no agent 'nobody'"),
        (("--provider", "anthropic", "task"), "ANTHROPIC_API_KEY"),
        (("--provider", "openai", "task"), "OPENAI_API_KEY"),
        (("--provider", "google", "task"), "GOOGLE_API_KEY"),
        (("runs", "show", "zzz"), "no run 'zzz'"),
        (("runs", "show", "\x1b]0;x\x07"), "\\x1b]0;x"),
        (("approvals", "show", "zzz"), "no request 'zzz'"),
        (("token", "create", "nobody"), "no user 'nobody'"),
    ],
)
def test_invalid_usage_is_one_line_and_exit_code_2(
    vel: Vel, arguments: tuple[str, ...], says: str
) -> None:
    done = vel(*arguments)
    assert done.returncode == 2, done.stderr
    assert says in one_line_of(done)
    assert done.stdout == ""
    assert vel.count("agents_run") == 0


def test_persist_can_precede_a_command(vel: Vel, tmp_path: Path) -> None:
    file = tmp_path / "agent.sqlite3"
    task = ("--persist", str(file), "--provider", "scripted", "--model", "echo", "task")
    assert vel(*task).returncode == 0
    for option in (["--persist", str(file)], [f"--persist={file}"]):
        listed = vel(*option, "runs", "list", "--json")
        assert '"task"' in listed.stdout, listed.stderr
    assert vel("--persist", str(file), "approvals", "list").returncode == 0
    assert "Usage: vel approvals" in vel("--persist", str(file), "approvals", "--help").stdout
    assert vel("runs", "list", "--json").stdout == ""
    done = vel("--persist", str(file), "approvals", "nosuch")
    assert done.returncode == 2
    assert "'nosuch'" in one_line_of(done)


@pytest.mark.slow
def test_a_word_that_is_near_a_command_can_still_be_a_task(vel: Vel) -> None:
    done = vel("run", "--provider", "scripted", "--model", "echo", "doctr")
    assert done.returncode == 0
    assert "doctr" in done.stdout


def test_debug_shows_the_traceback(vel: Vel) -> None:
    done = vel("--debug", "--agent", "nobody", "task")
    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert "Traceback" in vel("--agent", "nobody", "--debug", "task").stderr


def test_a_closed_pipe_is_not_an_error(vel: Vel) -> None:
    with subprocess.Popen(
        vel.command("--help"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=vel.env(),
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
