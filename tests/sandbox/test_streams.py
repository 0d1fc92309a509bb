"""The output of a command, and early ends because of it."""

import threading
from pathlib import Path

import pytest

from sandbox.cancellation import Cancellation
from sandbox.linux.bubblewrap import BubblewrapSandbox
from tests.sandbox.places import is_dead, sandbox_in, workspace_in
from tests.support.hang import HANG

pytestmark = pytest.mark.bubblewrap


def test_output_that_is_not_text_is_replaced(box: BubblewrapSandbox) -> None:
    result = box.execute(r"printf 'a\xff\xfeb\x00c\n'")
    assert result.stdout == "a\ufffd\ufffdb\0c\n"


def test_long_output_keeps_its_head_and_tail_and_reports_the_cut(place: Path) -> None:
    box = sandbox_in(place, output=1000)
    result = box.execute("seq 1 100000; echo end >&2")
    assert result.stdout.startswith("1\n2\n3\n")
    assert result.stdout.endswith("\n99999\n100000\n")
    assert "bytes of output cut here" in result.stdout
    assert len(result.stdout) < 1100
    assert result.truncated
    assert result.exit_code == 0
    assert result.stderr == "end\n"


def test_a_flood_of_output_ends_the_command(place: Path) -> None:
    box = sandbox_in(place, output=1000, output_flood=1_000_000)
    for command in ("yes", "yes >&2", "yes & yes >&2"):
        result = box.execute(command)
        assert result.exit_code == 137
        assert not result.timed_out
        assert "more than 1,000,000 bytes" in result.stderr
        assert len(result.stdout) + len(result.stderr) < 2400


def test_live_output_is_bounded(place: Path) -> None:
    box = sandbox_in(place, output=1000)
    seen: list[str] = []
    answered = threading.Event()

    def on_output(text: str) -> None:
        seen.append(text)
        answered.set()

    execution = box.start("echo first; sleep 60", on_output=on_output)
    killer = threading.Thread(target=lambda: answered.wait(HANG) and execution.kill())
    killer.start()
    assert execution.wait().cancelled
    killer.join()
    assert seen == ["first\n"]

    seen.clear()
    box.start("printf '\\xe6'; printf '\\xbc\\xa2'; seq 1 10000", on_output=on_output).wait()
    text = "".join(seen)
    assert text.startswith("漢1\n2\n")
    assert text.endswith("[... more of stdout is not shown live ...]\n")
    assert len(text) < 1100


def test_the_time_limit_ends_everything_with_124(box: BubblewrapSandbox) -> None:
    for seconds in (0.5, 5, 50):  # on a busy machine, the command starts late
        result = box.execute("echo before; sleep 600 & sleep 600", timeout=seconds)
        assert result.exit_code == 124
        assert result.timed_out
        assert not result.cancelled
        assert f"time limit of {seconds} s" in result.stderr
        if result.stdout:
            break
    assert result.stdout == "before\n"


def test_no_command_runs_longer_than_600_seconds(box: BubblewrapSandbox) -> None:
    assert box._wall_time(1e9) == 600.0
    assert box._wall_time(None) == box.timeout


def test_a_cancelled_command_is_137_and_cancelled(box: BubblewrapSandbox) -> None:
    cancel = Cancellation()
    running = threading.Event()
    thread = threading.Thread(target=lambda: running.wait(HANG) and cancel.cancel())
    thread.start()
    result = box.start(
        "trap '' TERM INT HUP; echo up; while :; do sleep 1; done",
        cancel=cancel,
        on_output=lambda _: running.set(),
    ).wait()
    thread.join()
    assert (result.exit_code, result.cancelled, result.stdout) == (137, True, "up\n")


def test_a_command_that_is_cancelled_before_its_start_never_runs(
    box: BubblewrapSandbox, place: Path
) -> None:
    cancel = Cancellation()
    cancel.cancel()
    result = box.start("touch ran", cancel=cancel).wait()
    assert (result.exit_code, result.cancelled) == (137, True)
    assert not (workspace_in(place).root / "workspace/ran").exists()


def test_killing_after_the_end_changes_nothing(box: BubblewrapSandbox) -> None:
    execution = box.start("echo done")
    first = execution.wait()
    execution.kill()
    assert execution.wait() is first
    assert first.stdout == "done\n"
    assert not first.cancelled


def test_a_failing_listener_kills_the_command(box: BubblewrapSandbox, place: Path) -> None:
    def on_output(_: str) -> None:
        raise LookupError("listener")

    execution = box.start("echo x; sleep 600; touch survived", on_output=on_output)
    with pytest.raises(LookupError):
        execution.wait()
    assert is_dead(execution.pid)
