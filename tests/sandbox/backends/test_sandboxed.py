"""Files and commands in one directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox import CompositeBackend, SandboxFilesystemBackend, StateFilesystemBackend
from sandbox.backends import WorkspaceBackend
from sandbox.errors import SandboxSetupError
from sandbox.linux.bubblewrap import BubblewrapSandbox
from tests.sandbox.places import workspace_in

pytestmark = pytest.mark.bubblewrap


def test_files_and_commands_see_the_same_directory(place: Path) -> None:
    backend = SandboxFilesystemBackend(str(place / "project"))

    assert "error" not in backend.write_file("/src/in.txt", "from the host\n")
    result = backend.execute("cat src/in.txt; echo changed > src/in.txt; echo new > out.txt")

    assert (result["stdout"], result["exit_code"], result["success"]) == (
        "from the host\n",
        0,
        True,
    )
    assert backend.read_file("src/in.txt")["content"] == "     1 | changed"
    assert backend.read_file("/out.txt")["content"] == "     1 | new"
    assert "error" not in backend.edit_file("/out.txt", "new", "edited")
    assert backend.execute("cat out.txt")["stdout"] == "edited\n"
    assert backend.working_dir == (place / "project").resolve()


def test_python_runs_and_time_limits_end_it(place: Path) -> None:
    backend = SandboxFilesystemBackend(str(place / "project"))

    assert backend.execute_python("print(6 * 7)")["stdout"] == "42\n"
    assert backend.execute("sleep 60", timeout=0.5)["timed_out"] is True


def test_links_that_a_command_plants_are_not_followed(place: Path) -> None:
    backend = SandboxFilesystemBackend(str(place / "project"))

    planted = backend.execute(
        "ln -s /etc/passwd link; mkfifo fifo; ln -s /etc dir; ln -s . self; "
        "printf 'x' > \"$(printf 'two\\nlines')\""
    )

    assert planted["success"], planted
    for path in ("link", "fifo", "dir/passwd"):
        assert list(backend.read_file(path)) == ["error"]
    assert [entry["name"] for entry in backend.ls()["entries"]] == [
        r"two\u000alines",
        "dir",
        "link",
        "self",
        "fifo",
    ]
    assert backend.grep("root")["matches"] == []


def test_a_directory_that_commands_must_not_get_is_refused() -> None:
    with pytest.raises(SandboxSetupError):
        SandboxFilesystemBackend("/etc")


def test_a_composite_runs_the_commands_of_its_default(place: Path) -> None:
    backend = CompositeBackend(
        SandboxFilesystemBackend(str(place / "project")), {"/memory/": StateFilesystemBackend()}
    )
    backend.write_file("/a.txt", "x")
    backend.write_file("/memory/b.txt", "y")

    assert backend.supports_execute is True
    assert backend.execute("ls")["stdout"] == "a.txt\n"
    assert backend.execute_python("print(open('a.txt').read())")["stdout"] == "x\n"


def test_the_workspace_has_the_same_paths_in_file_tools_and_commands(place: Path) -> None:
    workspace = workspace_in(place)
    backend = WorkspaceBackend(workspace.root, workspace.uid, workspace.gid)
    commands = BubblewrapSandbox(workspace.policy())

    written = backend.write_file("notes/a.md", "from file tools\n")["path"]
    assert commands.execute(f"cat {written} notes/a.md").stdout == "from file tools\n" * 2
    assert commands.execute("echo more >> notes/a.md; mkdir notes/sub").success
    assert commands.execute("echo done > /sandbox/outputs/report.md").success
    assert backend.read_file("notes/a.md")["total_lines"] == 2
    assert backend.read_file("/sandbox/outputs/report.md")["content"] == "     1 | done"
    assert "error" not in backend.write_file("notes/sub/b.md", "x")
    assert not commands.execute("echo x > /sandbox/skills/x").success
    assert "error" in backend.write_file("/sandbox/skills/x", "x")
