"""A reached limit in `vel TASK` leads to a question at the terminal, like an approval."""

from __future__ import annotations

import pytest

from tests.support.messages_api import MessagesServer
from tests.support.messages_script import ToolUse, Turn
from tests.velproject.command import Terminal, Vel

USAGE = {"input_tokens": 1_000, "output_tokens": 100, "cache_read_input_tokens": 0,
         "cache_creation_input_tokens": 0}  # fmt: skip
LOOK = Turn(text="Looking.", tool_uses=[ToolUse("ls", {"path": "/"})], usage=USAGE)
ANSWER = Turn(text="All done.", usage=USAGE)
FLAGS = ("--provider", "anthropic", "--no-sandbox", "--max-cost", "0.0035")


def env(server: MessagesServer) -> dict[str, str]:
    return {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "test-key"}


@pytest.mark.slow
def test_more_is_asked_for_at_the_terminal_and_given(vel: Vel) -> None:
    # Each call costs $0.003: the second starts below the limit, the third does not.
    with MessagesServer([LOOK, LOOK, ANSWER]) as server:
        terminal = Terminal(vel, *FLAGS, "go", **env(server))
        shown = terminal.expect("Give more? [y(es) / n(o) / e(dit)]")
        assert "The run cost $0.006 and may cost $0.0035." in shown
        assert "$0.0035 more" in shown
        assert "nearly used up" in shown
        terminal.type("y\n")
        terminal.expect("All done.")
        assert terminal.finish() == 0
    rows = vel.rows("usage")
    assert [(row["calls"], row["tokens"], row["cost"]) for row in rows] == [(3, 3_300, "0.009")]


@pytest.mark.slow
def test_no_ends_the_run_with_the_reason(vel: Vel) -> None:
    with MessagesServer([LOOK, LOOK, ANSWER]) as server:
        terminal = Terminal(vel, *FLAGS, "go", **env(server))
        terminal.expect("Give more?")
        terminal.type("n\n")
        terminal.expect("Why not?")
        terminal.type("too dear\n")
        terminal.expect("too dear")
        assert terminal.finish() == 4
    assert len(server.requests) == 2


@pytest.mark.slow
def test_without_a_terminal_it_waits_in_the_queue(vel: Vel) -> None:
    with MessagesServer([LOOK, LOOK, ANSWER]) as server:
        done = vel(*FLAGS, "go", **env(server))
        assert done.returncode == 3, done.stdout + done.stderr
        (request,) = vel.rows("approvals", "list")
        assert (request["kind"], request["input"]["limit_cost"]) == ("budget", "0.0035")
        given = '{"more_cost": "1"}'
        assert vel("approvals", "edit", request["id"], "--input", given).returncode == 0
        resumed = vel("runs", "resume", request["run"], **env(server))
        assert resumed.returncode == 0, resumed.stdout + resumed.stderr
