"""Find and kill sandboxes that no process watches."""

import os
import subprocess

import pytest

from sandbox.errors import SandboxSetupError
from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.reaper import kill_marked
from tests.sandbox.places import account, is_dead, processes_with

pytestmark = pytest.mark.bubblewrap


def token() -> str:
    return f"test-{os.getpid()}-{os.urandom(8).hex()}"


def test_a_marked_sandbox_is_killed_with_all_its_processes(box: BubblewrapSandbox) -> None:
    marker = token()
    execution = box.start("setsid sleep 600 & sleep 600", marker=marker)
    assert len(processes_with(marker)) >= 2  # bubblewrap outside and inside
    assert kill_marked([marker]) >= 2
    assert processes_with(marker) == []
    assert is_dead(execution.pid)
    with pytest.raises(SandboxSetupError, match="was killed"):
        execution.wait()


def test_other_sandboxes_are_left_alone(box: BubblewrapSandbox) -> None:
    mine, others = token(), token()
    execution = box.start("sleep 600", marker=others)
    assert kill_marked([mine]) == 0
    assert kill_marked([others[:-1], others + "x"]) == 0
    assert kill_marked([]) == 0
    assert processes_with(others)
    execution.kill()
    assert execution.wait().cancelled


def test_several_markers_in_one_pass(box: BubblewrapSandbox) -> None:
    markers = [token() for _ in range(3)]
    executions = [box.start("sleep 600", marker=marker) for marker in markers]
    # Two processes for each, and a third that is about to execute the command.
    assert kill_marked(markers[:2]) >= 4
    assert kill_marked(markers[:2]) == 0
    assert is_dead(executions[0].pid)
    assert not is_dead(executions[2].pid)
    assert kill_marked(markers) >= 2
    assert kill_marked(markers) == 0
    for execution in executions:
        with pytest.raises(SandboxSetupError):
            execution.wait()


@pytest.mark.parametrize("bad", ["", "a b", "x/y", "a\0b", "é", "a" * 129, "a\n"])
def test_a_marker_is_an_opaque_token(box: BubblewrapSandbox, bad: str) -> None:
    with pytest.raises(SandboxSetupError, match="marker"):
        kill_marked([bad])
    if bad:
        with pytest.raises(SandboxSetupError, match="marker"):
            box.start("true", marker=bad)


@pytest.mark.root
def test_a_process_of_another_account_with_our_mark_is_ignored() -> None:
    """An ordinary user's reaper meets a process that it may not kill."""
    marker = token()
    stranger = subprocess.Popen(
        ["sh", "-c", "read line", "sh", f"vel-sandbox:{marker}"], stdin=subprocess.PIPE
    )
    child = os.fork()
    if child == 0:
        os.setresuid(account(), account(), account())
        os._exit(kill_marked([marker]))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert stranger.poll() is None
    assert kill_marked([marker]) == 1
    stranger.wait()
