"""The mount: read-only, loaded on demand, and with one definition of a path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agents.engine.files.workspaces import with_mounts
from agents.middleware.filesystem import mounted
from memory.models import MemoryFile, MemoryRevision
from memory.mounts import MemoryFiles
from memory.paths import MOUNT
from sandbox.backends import StateFilesystemBackend, WorkspaceBackend
from sandbox.backends.protocol import FileBackend
from sandbox.errors import FileError, PathRefused, ReadOnlyPath
from sandbox.paths import AREAS, is_within
from tests.support.memory import remembered
from tests.support.runs import make_agent, make_user

pytestmark = pytest.mark.django_db

PATH = "knowledge/notes.md"
BOTH = pytest.mark.parametrize("sandbox", [False, True], ids=["state", "sandbox"])


def directly(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


def never(function: Callable[..., Any], *arguments: Any) -> Any:
    raise AssertionError("the memory was asked")


def tree(tmp_path: Path, sandbox: bool) -> FileBackend:
    if not sandbox:
        return StateFilesystemBackend()
    for area in AREAS:
        (tmp_path / area).mkdir(exist_ok=True)
    return WorkspaceBackend(tmp_path)


@BOTH
def test_the_mount_itself_refuses_all_writes(tmp_path: Path, sandbox: bool) -> None:
    agent = make_agent(make_user())
    remembered(agent, notes="Ada likes lists.\n")
    backend = with_mounts(tree(tmp_path, sandbox), agent.pk, directly)
    path = f"/memory/{PATH}"
    assert "only a decision" in backend.write_file(path, "x")["error"]
    assert "only a decision" in backend.edit_file(path, "lists", "x", True)["error"]
    assert "only a decision" in backend.write_file("/memory/AGENTS.md", "x")["error"]
    for name in (path, "/memory/new.md", "/memory/knowledge/new.md"):
        with pytest.raises(ReadOnlyPath):
            backend.write_bytes(name, b"x")
    with pytest.raises(FileError):
        backend.write_bytes("/memory", b"x")
    assert MemoryFile.objects.get().content == "Ada likes lists.\n"
    assert MemoryRevision.objects.count() == 1


@BOTH
def test_a_write_to_the_mount_fails_before_the_memory_is_asked(
    tmp_path: Path, sandbox: bool
) -> None:
    backend = with_mounts(tree(tmp_path, sandbox), "", never)
    assert "only a decision" in backend.write_file(f"/memory/{PATH}", "x")["error"]
    files = MemoryFiles("", never)
    with pytest.raises(ReadOnlyPath):
        files["/knowledge/x.md"] = b"x"
    with pytest.raises(ReadOnlyPath):
        del files["/knowledge/x.md"]


def test_the_mount_shows_the_rows_as_they_are_now() -> None:
    agent = make_agent(make_user())
    backend = with_mounts(StateFilesystemBackend(), agent.pk, directly)
    for text in ("one", "two"):
        remembered(agent, notes=text)
        assert backend.read_bytes(f"/memory/{PATH}", 100) == text.encode()


@BOTH
def test_tools_outside_of_the_memory_never_load_it(tmp_path: Path, sandbox: bool) -> None:
    backend = with_mounts(tree(tmp_path, sandbox), "", never)
    assert backend.write_file("work/a.txt", "alpha\n")["status"] == "ok"
    assert backend.edit_file("work/a.txt", "alpha", "beta")["status"] == "ok"
    assert "beta" in backend.read_file("work/a.txt")["content"]
    assert backend.grep("b", "work")["total_matches"] == 1
    assert backend.glob("work/*.txt")["count"] == 1
    assert "entries" in backend.ls(".")
    assert "memory" in {entry["name"] for entry in backend.ls("/")["entries"]}


PARTS = st.sampled_from(
    ["memory", "knowledge", "notes.md", "sandbox", "workspace", "..", ".", "", "Memory", "memory "]
)
NOISY = st.builds(
    lambda start, parts, end: start + "/".join(parts) + end,
    st.sampled_from(["", "/", "//", "./", "../", "../../", "~/"]),
    st.lists(PARTS | st.text(max_size=3), max_size=8),
    st.sampled_from(["", "/", "/.", "//", "\n", "\0"]),
)


@pytest.mark.slow_cases
@BOTH
@given(path=NOISY)
@example(path="/memory/../../memory/x")
@example(path="../../memory/knowledge/x")
@example(path="memory")
def test_no_path_arrives_in_the_memory_that_was_not_recognised(
    tmp_path_factory: pytest.TempPathFactory, sandbox: bool, path: str
) -> None:
    """A recognised path must be in the memory, and another path must not."""
    root = tmp_path_factory.getbasetemp() / "tree"
    root.mkdir(exist_ok=True)
    files = tree(root, sandbox)
    backend = with_mounts(files, "", never)
    found = mounted(path, files.cwd)
    inside = None if found is None else found[1]
    try:
        arrives = is_within(backend.resolve(path), MOUNT)
    except PathRefused:
        arrives = False
    assert (inside is not None) == arrives
    assert backend.cwd == files.cwd
