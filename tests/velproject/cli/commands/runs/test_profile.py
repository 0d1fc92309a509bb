"""`vel --profile sandbox_only`: the agent works with commands in the sandbox only."""

from __future__ import annotations

import pytest

from tests.velproject.command import Vel


def test_the_agent_of_the_command_has_the_profile(vel: Vel) -> None:
    model = ("--provider", "scripted", "--model", "echo")
    done = vel(*model, "--profile", "sandbox_only", "--approve", "execute_in_sandbox", "hello")
    assert done.returncode == 0, done.stderr
    assert vel.value("SELECT profile FROM agents_agent") == "sandbox_only"


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--profile", "sandbox_only", "--no-sandbox"], "remove --no-sandbox"),
        (["--profile", "sandbox_only", "--database", "a=sqlite:///a.db"], "remove --database"),
        (["--profile", "sandbox_only", "--approve", "execute"], "--approve: the tool execute is"),
        (
            ["--profile", "sandbox_only", "--agent", "ada"],
            "--profile cannot be combined with --agent",
        ),
        (["--profile", "half"], "'half' is not one of"),
        (["--no-sandbox", "--workspace", "."], "--workspace needs the sandbox"),
    ],
)
def test_flags_that_contradict_each_other_are_refused(
    vel: Vel, flags: list[str], problem: str
) -> None:
    refused = vel("--provider", "scripted", "--model", "echo", *flags, "hello")
    assert refused.returncode in (1, 2)
    assert problem in refused.stderr
    assert not vel.rows("runs", "list")
