"""The public tests for backends: all of Vel's pass them, and faulty ones do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sandbox import paths
from sandbox.backends import CompositeBackend, StateFilesystemBackend, TreeBackend, WorkspaceBackend
from sandbox.backends.sandboxed import SandboxFilesystemBackend
from sandbox.errors import SandboxSetupError
from tests.support.own_backends import Faulty, OwnFiles, RemoteMachine
from vel.testing.backends import BackendTests, problems_of


class InDirectory(BackendTests):
    @pytest.fixture(autouse=True)
    def _directory(self, tmp_path: Path) -> None:
        self.directory = tmp_path / "files"
        self.directory.mkdir()


class TestState(BackendTests):
    def backend(self) -> Any:
        return StateFilesystemBackend()


class TestTree(InDirectory):
    def backend(self) -> Any:
        return TreeBackend(self.directory)


class TestWorkspace(InDirectory):
    root = paths.WORKING_DIR

    def backend(self) -> Any:
        for area in paths.AREAS:
            (self.directory / area).mkdir()
        return WorkspaceBackend(self.directory)


@pytest.mark.bubblewrap
class TestSandbox(BackendTests):
    @pytest.fixture(autouse=True)
    def _directory(self, place: Path) -> None:
        self.directory = place / "work"

    def backend(self) -> Any:
        return SandboxFilesystemBackend(self.directory)


class TestMountOfComposite(BackendTests):
    root = "/mnt/state"

    def backend(self) -> Any:
        return CompositeBackend(OwnFiles(), {self.root: StateFilesystemBackend()})


class TestOwn(BackendTests):
    def backend(self) -> Any:
        return OwnFiles()


class TestRemote(BackendTests):
    def backend(self) -> Any:
        return RemoteMachine()


class TestOwnInComposite(BackendTests):
    def backend(self) -> Any:
        return CompositeBackend(OwnFiles(), {"/mnt": StateFilesystemBackend()})

    def test_replace_all_replaces_each(self) -> None:
        """The backend itself has no replace_all: the call is refused."""
        backend, path = self.backend(), self.at("a.txt")
        backend.write_file(path, "same\nsame")
        self.refused(backend.edit_file(path, "same", "other", replace_all=True))

    def test_a_long_line_is_read_on(self) -> None:
        backend = self.backend()
        backend.write_file(self.at("a.txt"), "0123456789")
        self.refused(backend.read_file(self.at("a.txt"), 0, 1, line_offset=8))

    def test_bytes_are_kept(self) -> None:
        """Without write_bytes the backend holds text only."""
        backend = self.backend()
        backend.write_bytes(self.at("a.txt"), "über".encode())
        assert backend.read_bytes(self.at("a.txt"), 1_000) == "über".encode()


class TestOwnInMount(TestOwnInComposite):
    root = "/mnt/own"

    def backend(self) -> Any:
        return CompositeBackend(StateFilesystemBackend(), {self.root: OwnFiles(), "/b": OwnFiles()})

    def test_a_search_from_above_finds_the_files_of_all_backends(self) -> None:
        backend = self.backend()
        for path in ("/a.md", "/b/x/b.md", self.at("c.md")):
            backend.write_file(path, "needle")
        files = ["/a.md", "/b/x/b.md", "/mnt/own/c.md"]
        assert backend.glob("**/*.md")["matches"] == files
        found = backend.grep("needle", "/")
        assert [match["file"] for match in found["matches"]] == files
        assert found["total_matches"] == 3


class Raises(OwnFiles):
    def read_file(self, path: str, offset: int, limit: int) -> dict[str, Any]:
        if path not in self.files:
            raise FileNotFoundError(path)
        return super().read_file(path, offset, limit)


class ForgetsPages(OwnFiles):
    def read_file(self, path: str, offset: int, limit: int) -> dict[str, Any]:
        return {**super().read_file(path, offset, limit), "has_more": False}


class ReplacesAny(OwnFiles):
    def edit_file(self, path: str, old_text: str, new_text: str) -> dict[str, Any]:
        if path not in self.files:
            return {"error": "missing"}
        self.files[path] = self.files[path].replace(old_text, new_text)
        return {"status": "ok"}


class ListsAll(OwnFiles):
    def ls(self, path: str) -> dict[str, Any]:
        return {"entries": [{"name": file[1:], "type": "file"} for file in self.files]}


class FindsEverywhere(OwnFiles):
    def grep(self, pattern: str, path: str, include: str | None) -> dict[str, Any]:
        return super().grep(pattern, "/", include)


@pytest.mark.parametrize("kind", [Raises, ForgetsPages, ReplacesAny, ListsAll, FindsEverywhere])
def test_a_faulty_backend_fails(kind: type[OwnFiles]) -> None:
    class Tests(BackendTests):
        def backend(self) -> Any:
            return kind()

    problems = problems_of(Tests())
    assert 1 <= len(problems) <= 4
    assert all(reason.partition(": ")[2] for reason in problems.values())


def test_a_fault_of_one_path_is_a_result_of_a_composite() -> None:
    backend = CompositeBackend(StateFilesystemBackend(), {"/m": Faulty()})
    assert "the storage is away" in backend.read_file("/m/raises")["error"]
    assert "of type list" in backend.read_file("/m/list")["error"]


@pytest.mark.parametrize("own_is_default", [True, False])
def test_a_name_hides_nothing_and_leads_to_its_file(own_is_default: bool) -> None:
    own, state = OwnFiles(), StateFilesystemBackend()
    default, mounted, top = (own, state, "") if own_is_default else (state, own, "/m")
    backend = CompositeBackend(default, {"/m": mounted})
    backend.write_file(f"{top}/a\u202eb.md", "text")
    assert list(own.files) == ["/a\u202eb.md"]
    (entry,) = [one for one in backend.ls(top or "/")["entries"] if one["type"] == "file"]
    assert entry["path"] == rf"{top}/a\u202eb.md"
    assert backend.read_file(entry["path"])["content"] == "     1 | text"
    assert backend.read_bytes(entry["path"], 100) == b"text"


@pytest.mark.parametrize("given", [None, "text", OwnFiles, {"ls": print}])
def test_a_backend_without_the_six_tools_is_refused(given: Any) -> None:
    with pytest.raises(SandboxSetupError, match="six file tools"):
        CompositeBackend(StateFilesystemBackend(), {"/m": given})
