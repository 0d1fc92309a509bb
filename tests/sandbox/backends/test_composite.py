"""Several backends as one tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox import paths
from sandbox.backends import (
    CompositeBackend,
    FileBackend,
    ReadOnly,
    StateFilesystemBackend,
    TreeBackend,
    WorkspaceBackend,
)
from sandbox.errors import ReadOnlyPath, SandboxSetupError, SandboxUnavailable


def state(**files: str) -> StateFilesystemBackend:
    backend = StateFilesystemBackend()
    for name, content in files.items():
        backend.write_bytes(f"/{name.replace('__', '/')}.md", content.encode())
    return backend


def names(backend: FileBackend, path: str) -> list[str]:
    return [entry["name"] for entry in backend.ls(path)["entries"]]


def test_the_longest_matching_mount_is_used() -> None:
    backend = CompositeBackend(
        state(a="default"),
        {"/memory/": state(a="memory"), "/memory/team/": state(a="team")},
    )

    for path, content in [
        ("/a.md", "default"),
        ("/memory/a.md", "memory"),
        ("/memory/team/a.md", "team"),
    ]:
        result = backend.read_file(path)
        assert (result["path"], result["content"]) == (path, f"     1 | {content}")
    assert "error" in backend.read_file("/memoryteam/a.md")


def test_writes_go_to_the_mount_under_its_own_names() -> None:
    inner = state()
    backend = CompositeBackend(state(), {"/memory": inner})

    assert backend.write_file("/memory/notes/x.md", "y")["path"] == "/memory/notes/x.md"
    assert inner.read_bytes("/notes/x.md", 10) == b"y"
    assert backend.edit_file("/memory/notes/x.md", "y", "z")["path"] == "/memory/notes/x.md"


def test_a_search_of_the_whole_tree_leaves_out_mounts_aside() -> None:
    skills = state(a="seen")
    routes = {"/sandbox/skills": skills, "/skills": skills, "/memory": state(b="seen")}
    backend = CompositeBackend(
        state(own="seen", sandbox__c="seen"), routes, aside=["/sandbox/skills", "/skills"]
    )
    own = ["/memory/b.md", "/own.md", "/sandbox/c.md"]
    assert backend.glob("**/*.md")["matches"] == own
    assert sorted(found["file"] for found in backend.grep("seen", "/")["matches"]) == own
    there = ["/sandbox/c.md", "/sandbox/skills/a.md"]
    assert backend.glob("**/*.md", "/sandbox")["matches"] == there
    assert backend.glob("/skills/**")["matches"] == ["/skills/a.md"]
    assert "skills" in names(backend, "/")


def test_listings_show_mounts_and_hide_the_files_under_them() -> None:
    default = state(a="", memory__hidden="", memory__shared__hidden="")
    backend = CompositeBackend(default, {"/memory/shared": state(seen=""), "/x/y/z": state(b="")})

    assert names(backend, "/") == ["memory", "x", "a.md"]
    assert names(backend, "/memory") == ["shared", "hidden.md"]
    assert names(backend, "/memory/shared") == ["seen.md"]
    assert names(backend, "/x") == ["y"]
    assert backend.ls("/x/y")["entries"] == [{"name": "z", "type": "directory", "path": "/x/y/z"}]
    assert "error" in backend.ls("/nowhere")


def test_glob_and_grep_span_mounts_with_outer_paths() -> None:
    default = state(a="needle", memory__hidden="needle")
    nested = CompositeBackend(state(b="needle"), {"/deep": state(c="needle")})
    backend = CompositeBackend(default, {"/memory": nested, "/x/y/z": state(d="needle")})
    everything = ["/a.md", "/memory/b.md", "/memory/deep/c.md", "/x/y/z/d.md"]

    assert backend.glob("**/*.md")["matches"] == everything
    assert sorted(m["file"] for m in backend.grep("needle")["matches"]) == everything
    assert backend.glob("*")["matches"] == ["/a.md"]
    assert backend.glob("*/*")["matches"] == ["/memory/b.md"]
    assert backend.glob("*/*/*/*")["matches"] == ["/x/y/z/d.md"]
    assert backend.glob("/memory/**")["matches"] == everything[1:3]
    assert backend.glob("**", "/x")["matches"] == ["/x/y/z/d.md"]
    assert backend.grep("needle", "/x", include="y/z/*")["files_searched"] == 1


def test_mounts_and_their_parents_cannot_be_written_or_read_as_files() -> None:
    backend = CompositeBackend(state(), {"/x/y": state()})

    for path in ("/x", "/x/y", "/"):
        assert "directory" in backend.write_file(path, "z")["error"]
        assert "directory" in backend.read_file(path)["error"]


def test_errors_name_the_outer_path() -> None:
    backend = CompositeBackend(state(), {"/memory": state(a="")})

    assert '"/memory/b.md"' in backend.read_file("/memory/b.md")["error"]
    assert '"/memory/a.md/x"' in backend.write_file("/memory/a.md/x", "")["error"]


def test_dots_do_not_cross_from_one_mount_into_a_refusal_of_another() -> None:
    backend = CompositeBackend(state(a="default"), {"/memory": ReadOnly(state(a="memory"))})

    assert backend.read_file("/memory/../a.md")["content"].endswith("default")
    assert "read-only" in backend.write_file("/x/../memory/a.md", "z")["error"]


def test_a_read_only_mount_reads_and_refuses_every_write() -> None:
    inner = state(a="one")
    backend = CompositeBackend(
        state(), {"/docs": ReadOnly(inner, "read-only. Ask the user to change it.")}
    )

    assert backend.read_file("/docs/a.md")["content"].endswith("one")
    for result in (
        backend.write_file("/docs/a.md", "two"),
        backend.write_file("/docs/new.md", "two"),
        backend.edit_file("/docs/a.md", "one", "two"),
    ):
        assert "Ask the user" in result["error"]
        assert '"/docs/' in result["error"]
    with pytest.raises(ReadOnlyPath):
        backend.write_bytes("/docs/a.md", b"two")
    assert inner.read_bytes("/a.md", 10) == b"one"
    assert ReadOnly(inner).supports_write is False


def test_a_route_for_everything_is_refused() -> None:
    with pytest.raises(SandboxSetupError, match="default"):
        CompositeBackend(state(), {"/": state()})


def test_without_a_sandbox_below_there_is_nothing_to_execute() -> None:
    backend = CompositeBackend(state(), {"/x": state()})

    assert backend.supports_execute is False
    with pytest.raises(SandboxUnavailable):
        backend.execute("true")


def in_workspace(root: Path) -> WorkspaceBackend:
    for area in paths.AREAS:
        (root / area).mkdir()
        (root / area / "file.md").write_text(f"needle in {area}\n")
    return WorkspaceBackend(root)


def test_the_workspace_shows_its_areas(tmp_path: Path) -> None:
    backend = in_workspace(tmp_path)

    for path in ("/", "/sandbox"):
        assert names(backend, path) == sorted(paths.AREAS)
        found = backend.grep("needle", path)
        assert sorted(match["file"] for match in found["matches"]) == sorted(
            f"/sandbox/{area}/file.md" for area in paths.AREAS
        )
    assert names(backend, "") == ["file.md"]
    assert backend.read_file("/skills/file.md")["path"] == "/sandbox/skills/file.md"
    assert backend.glob("/skills/**/*.md")["matches"] == ["/sandbox/skills/file.md"]
    assert backend.glob("/sandbox/*/file.md")["count"] == 5
    assert backend.glob("*")["matches"] == ["/sandbox/workspace/file.md"]


@pytest.mark.parametrize("area", sorted(paths.READ_ONLY_AREAS))
def test_skills_and_uploads_are_read_only(tmp_path: Path, area: str) -> None:
    backend = in_workspace(tmp_path)

    for path in (f"/sandbox/{area}/file.md", f"/sandbox/{area}/new/file.md"):
        assert "/sandbox/outputs" in backend.write_file(path, "x")["error"]
    assert "error" in backend.edit_file(f"/sandbox/{area}/file.md", "needle", "x")
    assert [entry.name for entry in (tmp_path / area).iterdir()] == ["file.md"]
    assert (tmp_path / area / "file.md").read_text() == f"needle in {area}\n"


@pytest.mark.parametrize("area", ["shared", "outputs", "workspace"])
def test_the_other_areas_are_writable(tmp_path: Path, area: str) -> None:
    backend = in_workspace(tmp_path)

    assert "error" not in backend.write_file(f"/sandbox/{area}/a/b.md", "x")
    assert (tmp_path / area / "a" / "b.md").read_text() == "x"


def test_files_outside_the_areas_cannot_be_written(tmp_path: Path) -> None:
    backend = in_workspace(tmp_path)

    for path in ("/sandbox/x", "/sandbox", "/x", "../x", "/sandbox/workspaces/x"):
        assert "error" in backend.write_file(path, "x")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted(paths.AREAS)


def test_a_link_from_a_writable_area_does_not_reach_another(tmp_path: Path) -> None:
    backend = in_workspace(tmp_path)
    (tmp_path / "workspace" / "skills").symlink_to("../skills")

    assert "link" in backend.write_file("skills/file.md", "x")["error"]
    assert "link" in backend.write_file("skills/new.md", "x")["error"]
    assert (tmp_path / "skills" / "file.md").read_text() == "needle in skills\n"


def test_memory_and_workspace_form_one_tree(tmp_path: Path) -> None:
    backend = CompositeBackend(in_workspace(tmp_path), {"/memory/": state(AGENTS="needle")})

    assert names(backend, "/") == sorted(["memory", *paths.AREAS])
    assert backend.grep("needle")["files_searched"] == 6
    assert backend.read_file("/memory/AGENTS.md")["path"] == "/memory/AGENTS.md"
    assert backend.read_file("file.md")["path"] == "/sandbox/workspace/file.md"
    assert backend.read_file("/skills/file.md")["path"] == "/sandbox/skills/file.md"
    assert "/sandbox/workspace/etc/passwd" in backend.read_file("/etc/passwd")["error"]
    assert backend.write_file("x.md", "y")["path"] == "/sandbox/workspace/x.md"


def test_a_tree_can_be_the_default(tmp_path: Path) -> None:
    backend = CompositeBackend(TreeBackend(tmp_path), {"/a/b": state(c="x")})
    (tmp_path / "a").write_text("a file where a mount needs a directory")

    assert names(backend, "/") == ["a"]
    assert names(backend, "/a") == ["b"]
    assert backend.glob("**")["matches"] == ["/a/b/c.md"]
