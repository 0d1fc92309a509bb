"""`vel approvals watch`."""

from __future__ import annotations

import signal
import subprocess
from typing import Any

import pytest

from tests.velproject.command import DEADLINE, Terminal, Vel, say


def waiting(vel: Vel, *calls: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    flags = vel.script(say("", *calls), say("Done."))
    assert vel(*flags, "--approve", "write_file", "go").returncode == 3
    return vel.requests()


WRITE = ("write_file", {"path": "a.txt", "content": "a"})
REMEMBER = ("write_memory", {"path": "knowledge/a.md", "content": "a", "reason": "b"})


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


@pytest.mark.slow
def test_watching_reports_new_and_decided_requests(vel: Vel) -> None:
    first, second = waiting(vel, WRITE, REMEMBER)
    process = vel.start("approvals", "watch")
    try:
        assert [read_line(process).split()[0] for _ in range(2)] == [first["id"], second["id"]]
        vel("approvals", "reject", first["id"])
        line = read_line(process)
        assert line.split()[:3] == [first["id"], "reject", "write_file"]
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=DEADLINE) == 0
        assert "Traceback" not in process.stdout.read()  # type: ignore[union-attr]
    finally:
        process.kill()
        process.wait()


def test_watching_at_a_terminal_shows_the_list_until_ctrl_c(vel: Vel) -> None:
    (request,) = waiting(vel, WRITE)
    terminal = Terminal(vel, "approvals", "watch")
    terminal.expect(request["id"])
    terminal.type("\x03")
    assert terminal.finish() == 0
