"""Memory bombs: all memory of a command counts, including hidden memory."""

from pathlib import Path

import pytest

from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.linux.probe import usable_cgroups
from sandbox.linux.watchdog_memory import MemoryWatch
from tests.sandbox.limited import MARKER, MIB, assert_nothing_is_left, limited

pytestmark = [pytest.mark.bubblewrap, pytest.mark.control_groups]

LIMIT = 64 * MIB
PREPARE = """
import array, mmap, os, signal, socket, sys, time
block = b"x" * (1 << 20)
def fill(descriptor, blocks):
    for _ in range(blocks):
        os.write(descriptor, block)
def hold():
    print("full", flush=True)
    signal.pause()
"""
BOMBS = {
    "malloc": "kept = [bytearray(block) for _ in range(300)]",
    "a memory file": "fill(os.memfd_create('bomb'), 300)",
    "many memory files": "for _ in range(300): fill(os.memfd_create('bomb'), 1)",
    "shared memory": "shared = mmap.mmap(-1, 300 << 20)\nfor _ in range(300): shared.write(block)",
    "/dev/shm": "fill(os.open('/dev/shm/bomb', os.O_CREAT | os.O_WRONLY), 200)",
    "/tmp": "fill(os.open('/tmp/bomb', os.O_CREAT | os.O_WRONLY), 200)",
    "the home": "fill(os.open('/home/sandbox/bomb', os.O_CREAT | os.O_WRONLY), 200)",
    "a deleted file in /tmp": (
        "bomb = os.open('/tmp/bomb', os.O_CREAT | os.O_WRONLY); os.unlink('/tmp/bomb')\n"
        "fill(bomb, 200)"
    ),
    "empty files in /tmp": "for n in range(150_000): os.close(os.open(f'/tmp/{n}', os.O_CREAT))",
    "many processes": (
        "for _ in range(30):\n"
        "    if os.fork() == 0:\n"
        "        kept = bytearray(block * 10)\n"
        "        signal.pause()"
    ),
    "a daemon": (
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        kept = bytearray(block * 200)\n"
        "        signal.pause()\n"
        "    os._exit(0)"
    ),
}
UNSEEN_BOMBS = {
    "memory files in flight": (
        "ends = [socket.socketpair() for _ in range(30)]\n"
        "for near, far in ends:\n"
        "    bomb = os.memfd_create('bomb')\n"
        "    fill(bomb, 10)\n"
        "    socket.send_fds(near, [b'x'], [bomb])\n"
        "    os.close(bomb)"
    ),
    "shared memory that is not mapped": (
        "shared = mmap.mmap(-1, 300 << 20)\n"
        "for n in range(300):\n"
        "    shared.write(block)\n"
        "    shared.madvise(mmap.MADV_DONTNEED)"
    ),
}
"""Memory that only the kernel can charge to a command."""


def explode(box: BubblewrapSandbox, bomb: str) -> None:
    result = box.start(["python3", "-c", f"{PREPARE}{bomb}\nhold()"], marker=MARKER).wait()
    assert not result.timed_out, "it could hold all that"
    assert result.exit_code == 137
    assert "[killed: more than 64 MiB of memory in all]" in result.stderr
    assert_nothing_is_left()


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_a_memory_bomb_is_killed(place: Path, use_cgroups: bool, bomb: str) -> None:
    explode(limited(place, use_cgroups, memory_total=LIMIT), bomb)


@pytest.mark.parametrize("bomb", UNSEEN_BOMBS.values(), ids=UNSEEN_BOMBS)
def test_memory_of_no_process_is_charged_to_the_group(place: Path, bomb: str) -> None:
    if usable_cgroups() is None:
        pytest.skip("needs control groups")
    explode(limited(place, True, memory_total=LIMIT), bomb)


def test_memory_that_a_fork_shares_counts_once(place: Path, use_cgroups: bool) -> None:
    result = limited(place, use_cgroups, memory_total=LIMIT).execute_python(
        "import os, time\n"
        "kept = bytearray(b'x' * (25 << 20))\n"
        "children = [os.fork() for _ in range(3)]\n"
        "time.sleep(0.3)\n"
        "if 0 not in children: print('fine')"
    )
    assert result.stdout == "fine\n", result.stderr


def test_all_processes_end_when_one_uses_too_much(place: Path, use_cgroups: bool) -> None:
    """Version 1 of control groups kills a single process."""
    result = limited(place, use_cgroups, memory_total=LIMIT).execute(
        "python3 -c 'import signal; kept = bytearray(b\"x\" * (300 << 20)); signal.pause()'; "
        "while :; do sleep 1; done"
    )
    assert (result.exit_code, result.timed_out) == (137, False)
    assert "of memory in all" in result.stderr


def test_the_watch_counts_existing_files(place: Path) -> None:
    """A memory file, a file in /tmp and private memory, each once."""
    box = limited(place, False, memory_total=None)
    watched: list[int] = []

    def count(_: str) -> None:
        watched.append(MemoryWatch(execution.pid, 10**12).bytes_used())
        execution.kill()

    execution = box.start(
        [
            "python3",
            "-c",
            f"{PREPARE}fill(os.memfd_create('a'), 40)\n"
            "fill(os.open('/tmp/a', os.O_CREAT | os.O_WRONLY), 30)\n"
            "kept = bytearray(block * 20)\nhold()",
        ],
        on_output=count,
    )
    assert execution.wait().cancelled
    assert 90 * MIB < watched[0] < 115 * MIB


def test_nothing_is_left_when_the_caller_kills(place: Path, use_cgroups: bool) -> None:
    execution = limited(place, use_cgroups).start("sleep 600", marker=MARKER)
    execution.kill()
    assert execution.wait().cancelled
    assert_nothing_is_left()
