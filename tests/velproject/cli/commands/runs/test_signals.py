"""Ctrl-C, SIGTERM and SIGKILL of `vel TASK`."""

from __future__ import annotations

import signal
import subprocess

import pytest

from tests.velproject.command import DEADLINE, Terminal, Vel, say


def start_slow_run(vel: Vel, *flags: str) -> Terminal:
    script = vel.script(say("Thinking very hard about it.", delay=600.0))
    terminal = Terminal(vel, *script, *flags, "take your time")
    terminal.expect("thinking")
    return terminal


@pytest.mark.slow
def test_ctrl_c_cancels_the_run_and_ends_with_130(vel: Vel) -> None:
    terminal = start_slow_run(vel)
    terminal.type("\x03")
    terminal.expect("Cancelled")
    assert terminal.finish() == 130
    (run,) = vel.runs()
    assert run["status"] == "cancelled"


@pytest.mark.slow
def test_sigterm_cancels_the_run_and_ends_with_143(vel: Vel) -> None:
    terminal = start_slow_run(vel)
    terminal.signal(signal.SIGTERM)
    assert terminal.finish() == 143
    (run,) = vel.runs()
    assert run["status"] == "cancelled"


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_ctrl_c_ends_the_command_in_the_sandbox(vel: Vel) -> None:
    script = vel.script(say("", ("execute", {"command": "echo begun; exec sleep 543"})))
    terminal = Terminal(vel, *script, "sleep")
    terminal.expect("execute")
    terminal.type("\x03")
    assert terminal.finish() == 130


@pytest.mark.slow
def test_ctrl_c_at_an_approval_cancels_the_run(vel: Vel) -> None:
    script = vel.script(say("", ("ls", {"path": "."})), say("Done."))
    terminal = Terminal(vel, *script, "--approve", "ls", "look")
    terminal.expect("Run it?")
    terminal.type("\x03")
    assert terminal.finish() == 130
    (run,) = vel.runs()
    assert run["status"] == "cancelled"
    assert [request["status"] for request in vel.requests()] == ["cancelled"]


def start_question(vel: Vel) -> Terminal:
    script = vel.script(say("", ("ls", {"path": "."})), say("Done."))
    terminal = Terminal(vel, *script, "--approve", "ls", "look")
    terminal.expect("Run it?")
    return terminal


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_approval_notices_a_signal_that_interrupts_no_system_call(
    vel: Vel, number: signal.Signals, code: int
) -> None:
    terminal = start_question(vel)
    terminal.signal_unnoticed(number)
    terminal.expect("Cancelled")
    assert terminal.finish() == code
    assert vel.runs()[0]["status"] == "cancelled"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_a_session_notices_a_signal_that_interrupts_no_system_call(
    vel: Vel, number: signal.Signals, code: int
) -> None:
    terminal = Terminal(vel, *vel.script(say("Done.")), TERM="dumb")
    terminal.expect("> ")
    terminal.signal_unnoticed(number)
    assert terminal.finish() == code


@pytest.mark.parametrize("question", ["Password: ", "Repeat for confirmation: "])
def test_a_password_prompt_notices_a_signal_that_interrupts_no_system_call(
    vel: Vel, question: str
) -> None:
    terminal = Terminal(vel, "user", "create", "joan")
    terminal.expect("Password: ")
    if question != "Password: ":
        terminal.type("hunter-green-7\n")
        terminal.expect(question)
    terminal.signal_unnoticed(signal.SIGINT)
    assert terminal.finish() == 130
    assert vel.count("auth_user") == 0


@pytest.mark.slow
def test_ctrl_c_after_the_question_was_answered_cancels_the_run(vel: Vel) -> None:
    script = vel.script(
        say("", ("ls", {"path": "."})), say("Thinking very hard about it.", delay=600.0)
    )
    terminal = Terminal(vel, *script, "--approve", "ls", "look")
    terminal.expect("Run it?")
    terminal.type("y\n")
    terminal.expect("thinking")
    terminal.signal_unnoticed(signal.SIGINT)
    terminal.expect("Cancelled")
    assert terminal.finish() == 130


@pytest.mark.slow
def test_closing_the_terminal_at_an_approval_cancels_the_run(vel: Vel) -> None:
    terminal = start_question(vel)
    terminal.hang_up()
    assert terminal.finish() == 129
    assert vel.runs()[0]["status"] == "cancelled"


@pytest.mark.slow
def test_closing_the_terminal_at_work_cancels_the_run(vel: Vel) -> None:
    terminal = start_slow_run(vel)
    terminal.hang_up()
    assert terminal.finish() == 129
    assert vel.runs()[0]["status"] == "cancelled"


@pytest.mark.slow
def test_after_ctrl_d_at_an_approval_the_session_offers_the_next_steps(vel: Vel) -> None:
    looks = say("", ("ls", {"path": "."}))
    terminal = Terminal(
        vel, *vel.script(looks, looks, say("Done.")), "--approve", "ls", TERM="dumb"
    )
    terminal.expect("> ")
    terminal.type("look\n")
    terminal.expect("Run it?")
    terminal.type("\x04")
    terminal.expect("Type `resume`")
    terminal.type("and now?\n")
    terminal.expect("is busy: its run")
    terminal.expect("Type `resume`")
    terminal.type("Resume\n")
    terminal.expect("Run it?")
    terminal.type("y\n")
    terminal.expect("Run it?")
    terminal.type("\x04")
    terminal.expect("Type `resume`")
    terminal.type("cancel\n")
    terminal.expect("Cancelled")
    terminal.type("go on\n")
    terminal.expect("Done.")
    terminal.type("exit\n")
    assert terminal.finish() == 0
    assert [run["status"] for run in vel.runs()] == ["completed", "cancelled"]


@pytest.mark.slow
def test_in_a_session_ctrl_c_cancels_the_run_and_the_session_continues(vel: Vel) -> None:
    script = vel.script(say("Thinking very hard.", delay=600.0))
    terminal = Terminal(vel, *script)
    terminal.expect("\x1b[?2004h")
    terminal.type("ponder\r")
    terminal.expect("thinking")
    terminal.type("\x03")
    terminal.expect("Cancelled")
    terminal.expect("\x1b[?2004h")
    terminal.type("exit\r")
    terminal.finish()
    (run,) = vel.runs()
    assert run["status"] == "cancelled"


@pytest.mark.slow
def test_a_run_of_a_killed_process_can_be_cancelled(vel: Vel) -> None:
    terminal = start_slow_run(vel)
    terminal.signal(signal.SIGKILL)
    assert terminal.finish() == -signal.SIGKILL
    (run,) = vel.runs()
    assert run["status"] == "running"
    done = when_its_lease_ends(vel, "runs", "cancel", run["id"])
    assert done.returncode == 0, done.stderr
    assert vel.runs()[0]["status"] == "cancelled"


@pytest.mark.slow
def test_a_run_of_a_killed_process_continues_with_resume(vel: Vel) -> None:
    script = vel.script(
        say("Looking.", ("ls", {"path": "."})), say("Thinking long enough.", delay=3.0)
    )
    terminal = Terminal(vel, *script, "--session", "s", "go")
    terminal.expect("Thin")
    terminal.signal(signal.SIGKILL)
    terminal.finish()
    (run,) = vel.runs()
    busy = vel(*script, "--session", "s", "more")
    assert busy.returncode == 2
    assert f"vel runs resume {run['id']}" in busy.stderr
    done = when_its_lease_ends(vel, "runs", "resume", run["id"])
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Thinking long enough.\n"


def when_its_lease_ends(vel: Vel, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command that waits for the lease of a lost run, and end the lease when it reports that.

    To save half a minute, the lease's end in the database is moved to the past.
    """
    command = vel.command(*arguments)
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=vel.env(),
        cwd=vel.data,
    ) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        assert "waiting until its lease" in said, said + process.stderr.read()
        assert process.poll() is None
        vel.execute("UPDATE agents_runclock SET lease_until = lease_until - 60")
        stdout, stderr = process.communicate(timeout=DEADLINE)
    return subprocess.CompletedProcess(command, process.returncode, stdout, said + stderr)
