"""Quotas and times, which only the in-memory store has."""

from __future__ import annotations

import pytest

from sandbox.backends import CompositeBackend, MemoryFileStore, StateFilesystemBackend
from sandbox.errors import StorageFull


def test_a_store_keeps_when_a_file_was_created() -> None:
    store = MemoryFileStore()
    store["/a"] = b"one"
    first = store.info("/a")
    store["/a"] = b"four"
    second = store.info("/a")

    assert first is not None
    assert second is not None
    assert (first.size, second.size) == (3, 4)
    assert second.created == first.created <= second.modified


def test_a_store_has_no_room_beyond_its_limits() -> None:
    store = MemoryFileStore(max_bytes=10, max_files=2)
    backend = StateFilesystemBackend(store)

    assert "error" not in backend.write_file("/a", "12345")
    assert "no room" in backend.write_file("/b", "123456")["error"]
    assert "error" not in backend.write_file("/a", "1234567890")
    assert "error" not in backend.write_file("/b", "")
    assert "no room" in backend.write_file("/c", "")["error"]
    del store["/a"]
    assert "error" not in backend.write_file("/c", "1234567890")
    with pytest.raises(StorageFull):
        store["/c"] = b"12345678901"
    assert backend.read_bytes("/c", 100) == b"1234567890"


def test_a_directory_exists_as_long_as_it_has_files() -> None:
    store = MemoryFileStore()
    backend = StateFilesystemBackend(store)
    backend.write_file("/dir/a", "x")

    assert backend.ls("/dir")["entries"]
    del store["/dir/a"]
    assert "error" in backend.ls("/dir")
    assert backend.ls("/")["entries"] == []


def test_backends_share_a_store() -> None:
    store = MemoryFileStore()
    StateFilesystemBackend(store).write_file("/a", "x")

    assert StateFilesystemBackend(store).read_bytes("/a", 1) == b"x"
    assert StateFilesystemBackend().stat("/a") is None


@pytest.mark.parametrize("data", [b"a\0b", b"caf\xe9"])
@pytest.mark.parametrize("mounted", [False, True])
def test_no_command_is_advised_for_files_that_commands_cannot_reach(
    data: bytes, mounted: bool
) -> None:
    state = StateFilesystemBackend()
    state.write_bytes("/x", data)
    backend = CompositeBackend(StateFilesystemBackend(), {"/m": state}) if mounted else state
    path = "/m/x" if mounted else "/x"
    told = [
        backend.read_file(path)["error"],
        backend.edit_file(path, "a", "b")["error"],
        *([backend.grep("a", path)["error"]] if b"\0" in data else []),
    ]
    for message in told:
        assert "with a command" not in message
        assert "replace it with write_file, or let a program read it with read_bytes" in message
