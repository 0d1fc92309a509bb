"""File tools in a user's own directory: protected files are refused, source files are not."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox import SandboxFilesystemBackend
from sandbox.backends import WorkspaceBackend
from sandbox.backends.tools import FileTools
from sandbox.own_directory.rules import FileRules
from sandbox.workspace import prepare
from tests.sandbox.own_directory.checkouts import as_user, contents, make_checkout

pytestmark = pytest.mark.bubblewrap


def over_workspace(place: Path, project: Path, rules: FileRules | None = None) -> FileTools:
    prepared = prepare(place / "threads", "thread", own_directory=project)
    workspace = replace(prepared, rules=rules or FileRules())
    directories = {"workspace": project}
    return WorkspaceBackend(
        workspace.root,
        workspace.uid,
        workspace.gid,
        directories=directories,
        guard=workspace.guard(),
    )


def over_directory(place: Path, project: Path, rules: FileRules | None = None) -> FileTools:
    return SandboxFilesystemBackend(project, rules=rules)


Over = Callable[..., FileTools]
BACKENDS = [over_workspace, over_directory]


@pytest.mark.parametrize("over", BACKENDS)
@pytest.mark.parametrize(
    "path",
    [
        ".git/hooks/pre-commit",
        ".git/config",
        ".git/objects/x",
        ".GIT/hooks/pre-commit",
        ".Git/config",
        ".g\u200cit/config",
        "new/.git/hooks/pre-commit",
        ".envrc",
        ".ENVRC",
        ".vscode/tasks.json",
        "packages/a/.vscode/tasks.json",
        ".github/workflows/new.yml",
        ".bashrc",
        "link/hooks/pre-commit",
        "link/../.envrc",
        "tools/hooks/pre-commit",
        "to-tools/hooks/pre-commit",
        "a.code-workspace",
    ],
)
def test_protected_files_are_refused(place: Path, over: Over, path: str) -> None:
    project = make_checkout(
        place,
        more="ln -s .git link && mkdir -p tools/hooks && ln -s tools to-tools && "
        "touch tools/hooks/x && git config core.hooksPath tools/hooks",
    )
    before = contents(project)
    backend = over(place, project)
    written = backend.write_file(path, "evil")
    assert "error" in written
    assert "protected" in written["error"] or "leads out" in written["error"], written
    edited = backend.edit_file(path, "a", "b")
    assert "error" in edited
    assert contents(project) == before


@pytest.mark.parametrize("over", BACKENDS)
def test_editing_a_protected_file_names_the_reason_and_the_option(place: Path, over: Over) -> None:
    project = make_checkout(place, more="echo user > .envrc")
    backend = over(place, project)
    error = backend.edit_file(".envrc", "user", "evil")["error"]
    assert "direnv" in error
    assert "--allow-write" in error
    assert (project / ".envrc").read_text() == "user\n"


@pytest.mark.parametrize("over", BACKENDS)
def test_source_files_can_be_written(place: Path, over: Over) -> None:
    project = make_checkout(place)
    backend = over(place, project)
    for path in ("source.txt", "Makefile", "package.json", ".gitignore", ".env", "a/b/c.py"):
        assert "error" not in backend.write_file(path, "text"), path
        assert (project / path).read_text() == "text"
    assert (project / "a/b").stat().st_uid == project.stat().st_uid


@pytest.mark.parametrize("over", BACKENDS)
def test_the_git_file_of_a_worktree_is_protected(place: Path, over: Over) -> None:
    make_checkout(place, "main")
    as_user("git worktree add -q ../tree", place / "main")
    tree = place / "tree"
    if not tree.exists():
        tree.mkdir()
        os.chown(tree, (place / "main").stat().st_uid, (place / "main").stat().st_gid)
        as_user("git worktree add -q --force ../tree", place / "main")
    backend = over(place, tree)
    before = (tree / ".git").read_text()
    assert "error" in backend.write_file(".git", "gitdir: evil")
    assert (tree / ".git").read_text() == before


@pytest.mark.parametrize("over", BACKENDS)
def test_allowed_files_can_be_written(place: Path, over: Over) -> None:
    project = make_checkout(place)
    rules = FileRules(allow_write=(".github",), protect=("deploy",))
    backend = over(place, project, rules)
    assert "error" not in backend.write_file(".github/workflows/ci.yml", "on: push")
    assert "error" in backend.write_file(".gitlab-ci.yml", "x")
    assert "error" in backend.write_file("deploy/run.sh", "x")
    assert not (project / "deploy").exists()


def test_a_protected_file_stays_closed_in_an_open_directory() -> None:
    rules = FileRules(allow_write=(".github",), protect=("ci.yml",))
    assert rules.opens(".github/workflows/release.yml")
    assert not rules.opens(".github/workflows/ci.yml")


def test_a_path_of_the_host_is_refused_with_the_path_in_the_workspace(place: Path) -> None:
    project = make_checkout(place, more="mkdir sub && echo text > sub/a.md")
    refused = over_workspace(place, project).read_file(str(project / "sub" / "a.md"))
    assert "Use '/sandbox/workspace/sub/a.md'" in refused["error"]
