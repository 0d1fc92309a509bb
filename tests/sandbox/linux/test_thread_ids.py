"""Giving ids to a thread does not change the process."""

import os
import threading
from pathlib import Path

import pytest

from sandbox.account import Account
from sandbox.linux.thread_ids import real_ids_of


def ids_of(thread: int) -> list[str]:
    lines = Path(f"/proc/self/task/{thread}/status").read_text().splitlines()
    return [line for line in lines if line.startswith(("Uid:", "Gid:", "Cap"))]


@pytest.mark.root
def test_only_the_calling_thread_changes_and_only_for_the_block() -> None:
    main = threading.get_native_id()
    before = ids_of(main)
    seen: list[tuple[int, int, list[str]]] = []

    def borrow() -> None:
        try:
            with real_ids_of(Account(4321, 1234)):
                # The C library returns the ids of the calling thread.
                seen.append((os.getuid(), os.getgid(), ids_of(main)))
                assert (os.geteuid(), os.getegid()) == (0, 0)
                raise LookupError
        except LookupError:
            seen.append((os.getuid(), os.getgid(), ids_of(threading.get_native_id())))

    thread = threading.Thread(target=borrow)
    thread.start()
    thread.join()
    assert seen == [(4321, 1234, before), (0, 0, before)]
    assert Path("/proc/self/status").stat().st_uid == 0


def test_the_callers_own_account_needs_no_change() -> None:
    with real_ids_of(Account(os.getuid(), os.getgid())):
        assert os.getresuid()[0] == os.getuid()
