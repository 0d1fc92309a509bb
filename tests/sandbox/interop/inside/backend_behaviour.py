"""The behaviour of a local execution backend: one stream, codes, limits, a name, confinement."""

import asyncio
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from deepagents.backends.protocol import SandboxBackendProtocol
from deepagents.backends.sandbox import BaseSandbox

from sandbox.directories.removal import remove_tree
from sandbox.errors import SandboxSetupError
from sandbox.interop.deepagents import LocalExecutionBackend
from tests.sandbox.places import processes_with, reachable_directory, until


@pytest.fixture
def place() -> Iterator[Path]:
    with reachable_directory() as path:
        yield path


@pytest.fixture
def backend(place: Path) -> Iterator[LocalExecutionBackend]:
    backend = LocalExecutionBackend(place / "root")
    yield backend
    backend.close()


def test_it_is_a_sandbox_backend_and_needs_no_django(backend: LocalExecutionBackend) -> None:
    assert isinstance(backend, BaseSandbox)
    assert isinstance(backend, SandboxBackendProtocol)
    assert not [name for name in sys.modules if name.split(".")[0] == "django"]


def test_both_streams_are_combined_in_the_order_written(backend: LocalExecutionBackend) -> None:
    done = backend.execute("for n in 1 2 3; do echo out$n; echo err$n >&2; done; exit 3")
    assert done.output == "out1\nerr1\nout2\nerr2\nout3\nerr3\n"
    assert (done.exit_code, done.truncated) == (3, False)
    assert "syntax error" in backend.execute("echo 'one'\n)").output


def test_commands_start_in_the_root(backend: LocalExecutionBackend) -> None:
    assert backend.execute("pwd; echo kept > file").output == f"{backend.root_dir}\n"
    assert (backend.root_dir / "file").read_text() == "kept\n"
    assert backend.execute("python -c 'print(6 * 7)'").output == "42\n"


def test_a_late_command_ends_with_124_and_keeps_its_output(place: Path) -> None:
    seconds = f"600.{os.getpid()}"
    for limit in (0.3, 3, 30):  # on a busy machine, the command starts late
        backend = LocalExecutionBackend(place / f"root-{limit}", timeout=limit)
        done = backend.execute(f"echo begun; exec sleep {seconds}")
        assert done.exit_code == 124
        assert f"time limit of {limit} s" in done.output
        if done.output.startswith("begun\n"):
            break
    assert done.output.startswith("begun\n")
    assert backend.execute("sleep 0.5", timeout=60).exit_code == 0
    assert not processes_with(seconds)


def test_output_is_cut_to_the_requested_characters(place: Path) -> None:
    backend = LocalExecutionBackend(place / "root", max_output_chars=300)
    done = backend.execute("echo begin; yes 'ü' | head -n 500000; echo end")
    assert done.truncated
    assert len(done.output) == 300
    assert done.output.startswith("begin\nü")
    assert done.output.endswith("ü\nend\n")
    assert "output cut here" in done.output
    short = backend.execute("printf %0300d 0")
    assert (len(short.output), short.truncated) == (300, False)
    # The output of deepagents' own scripts is data, and is not cut.
    text = "line of a file\n" * 4000
    path = f"{backend.root_dir}/long.txt"
    assert backend.write(path, text).error is None
    read = backend.read(path, 0, 4000)
    assert read.file_data is not None
    assert read.file_data["content"].rstrip("\n") == text.rstrip("\n")


def test_the_id_belongs_to_the_root(place: Path) -> None:
    first, again = (LocalExecutionBackend(place / "one") for _ in range(2))
    assert first.id == first.id == again.id
    assert first.id != LocalExecutionBackend(place / "two").id


def test_a_large_edit_works(backend: LocalExecutionBackend) -> None:
    """It uses files in /tmp, which must therefore outlive one command."""
    path = f"{backend.root_dir}/large"
    assert backend.write(path, "a" * 40_000 + "tail").error is None
    assert backend.edit(path, "a" * 40_000, "b" * 40_000).occurrences == 1
    assert backend.execute("cut -c39999-40003 large").output == "bbtai\n"
    assert ".deepagents" not in backend.execute("ls -A /tmp").output


def test_commands_reach_no_network_and_no_host(backend: LocalExecutionBackend) -> None:
    marker = Path(tempfile.gettempdir()) / f"vel-host-{os.getpid()}"
    marker.write_text("the host's")
    try:
        assert backend.execute(f"cat {marker}").exit_code != 0
        assert "vel-host" not in backend.execute("ls /tmp /home /root 2>&1").output
    finally:
        marker.unlink()
    assert backend.execute("cat < /dev/tcp/1.1.1.1/80").exit_code != 0
    assert "Read-only" in backend.execute("touch /usr/x").output
    assert backend.execute("cat /proc/1/environ | tr '\\0' '\\n' | grep -c HOST").output == "0\n"


def test_tmp_is_one_backends_own_and_ends_with_it(place: Path) -> None:
    first, second = (LocalExecutionBackend(place / "root") for _ in range(2))
    first.execute("echo mine > /tmp/note")
    assert first.execute("cat /tmp/note").output == "mine\n"
    assert second.execute("cat /tmp/note").exit_code != 0
    before = set(Path(tempfile.gettempdir()).glob("vel-places-*"))
    first.close()
    assert len(before - set(Path(tempfile.gettempdir()).glob("vel-places-*"))) == 1
    second.close()


@pytest.mark.parametrize(
    "root",
    [
        *("/", "/etc", "/usr", "/home", "/tmp", "/proc/self", "~"),
        *("/etc/x", "/usr/local/x", "/bin/x", "/lib/x", "/var/spool/cron/x"),
    ],
)
def test_a_root_that_exposes_the_machine_is_refused(root: str) -> None:
    with pytest.raises(SandboxSetupError):
        LocalExecutionBackend(os.path.expanduser(root))
    assert not root.endswith("x") or not os.path.exists(root)


@pytest.fixture(params=["/tmp", "/var/tmp"])
def temporary_root(request: pytest.FixtureRequest) -> Iterator[LocalExecutionBackend]:
    """A root in the host's temporary directories, which has the paths of the other one, too."""
    directory = Path(tempfile.mkdtemp(prefix="vel-interop-test-", dir=request.param))
    directory.chmod(0o711)
    backend = LocalExecutionBackend(directory / "way/root")
    yield backend
    backend.close()
    remove_tree(directory)


def test_a_root_in_a_temporary_directory_has_one_name(
    temporary_root: LocalExecutionBackend,
) -> None:
    root = str(temporary_root.root_dir)
    temporary_root.execute("mkdir sub; echo found > sub/a.txt")
    expected = [f"{root}/sub/a.txt"]
    inside = temporary_root.execute("pwd -P").output.strip()
    assert inside.startswith("/tmp/")
    for start in (None, root, inside, "/tmp", "sub"):
        assert [m["path"] for m in temporary_root.glob("*.txt", start).matches] == expected, start
        assert [m["path"] for m in temporary_root.grep("found", start).matches] == expected, start
    assert [e["path"] for e in temporary_root.ls(f"{inside}/sub").entries] == expected


def test_a_write_arrives_at_each_name_of_the_root_or_fails(
    temporary_root: LocalExecutionBackend,
) -> None:
    root = temporary_root.root_dir
    inside = temporary_root.execute("pwd -P").output.strip()
    for number, name in enumerate((str(root), inside, inside.replace("/tmp", "/var/tmp", 1))):
        assert temporary_root.write(f"{name}/{number}", "arrived").error is None
        assert (root / f"{number}").read_text() == "arrived"
        assert temporary_root.download_files([f"{name}/{number}"])[0].content == b"arrived"
    for path in (f"{root.parent}/lost", f"{os.path.dirname(inside)}/lost"):
        assert f"this is {root}/lost." in (temporary_root.write(path, "lost").error or "")
        assert temporary_root.upload_files([(path, b"lost")])[0].error == "invalid_path"
    assert temporary_root.write("/var/tmp/note", "mine").error is None
    assert temporary_root.execute("cat /tmp/note").output == "mine"


def test_relative_paths_start_in_the_root(backend: LocalExecutionBackend) -> None:
    root = backend.root_dir
    for path in ("sub/notes.txt", "./sub/notes.txt"):
        assert backend.write(path, "one").path == f"{root}/sub/notes.txt"
        assert backend.read(path).file_data["content"] == "one"
        assert backend.edit(path, "one", "two").path == f"{root}/sub/notes.txt"
        assert backend.ls("sub").entries == [{"path": f"{root}/sub/notes.txt", "is_dir": False}]
        assert backend.delete(path).path == f"{root}/sub/notes.txt"
    assert os.listdir(root / "sub") == []


async def test_searches_without_a_path_search_the_root(backend: LocalExecutionBackend) -> None:
    """deepagents' tools change `.` into `/.`."""
    path = f"{backend.root_dir}/sub/a.py"
    assert backend.write(path, "found").error is None
    for start in (None, ".", "/."):
        assert [m["path"] for m in backend.glob("*.py", start).matches] == [path]
        assert [m["path"] for m in (await backend.aglob("*.py", start)).matches] == [path]
        assert [m["path"] for m in backend.grep("found", start).matches] == [path]
        assert [m["path"] for m in (await backend.agrep("found", start)).matches] == [path]


async def test_an_error_outside_of_the_root_names_the_right_path(
    backend: LocalExecutionBackend,
) -> None:
    """Models use /notes.md, because deepagents does not tell them the working directory."""
    right = f"In the working directory, this is {backend.root_dir}/notes.md."
    for result in (
        backend.write("/notes.md", "x"),
        await backend.awrite("/notes.md", "x"),
        backend.read("/notes.md"),
        await backend.aread("/notes.md"),
        backend.edit("/notes.md", "a", "b"),
        await backend.aedit("/notes.md", "a", "b"),
        backend.delete("/notes.md"),
        await backend.adelete("/notes.md"),
        backend.ls("/notes.md"),
        await backend.als("/notes.md"),
        backend.glob("*", "/notes.md"),
        await backend.aglob("*", "/notes.md"),
        backend.grep("a", "/notes.md"),
        await backend.agrep("a", "/notes.md"),
    ):
        assert right in (result.error or ""), result
    assert backend.read("/usr/bin/env").error is None
    assert backend.grep("no such text", str(backend.root_dir)).error is None
    assert "working directory" not in (backend.read("missing").error or "missing")


def test_the_instructions_name_the_directories(place: Path) -> None:
    (place / "skills").mkdir(mode=0o755)
    backend = LocalExecutionBackend(place / "root")
    assert f"{backend.root_dir}/notes.md" in backend.instructions
    assert "/skills" not in backend.instructions
    with_skills = LocalExecutionBackend(place / "root", skills_dir=place / "skills")
    assert "/skills (read-only)" in with_skills.instructions


def test_invalid_limits_are_refused(place: Path) -> None:
    for wrong in ({"timeout": 0}, {"timeout": -1}, {"max_output_chars": 0}):
        with pytest.raises(ValueError, match="must be"):
            LocalExecutionBackend(place / "root", **wrong)


def test_a_command_that_cannot_run_is_reported(backend: LocalExecutionBackend) -> None:
    for command in ("echo \0", "echo \ud800"):
        done = backend.execute(command)
        assert done.exit_code == 126
        assert done.output.startswith("Error: The command contains")
    assert backend.execute("true", timeout=-1).exit_code == 126


def test_many_threads_share_a_backend(backend: LocalExecutionBackend) -> None:
    def one(number: int) -> tuple[str, str | None]:
        path = f"{backend.root_dir}/file{number}"
        error = backend.write(path, f"text {number}").error
        return backend.execute(f"cat file{number}").output, error

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(24))) == [(f"text {n}", None) for n in range(24)]


async def test_a_cancelled_command_is_killed(backend: LocalExecutionBackend) -> None:
    task = asyncio.create_task(backend.aexecute("exec sleep 600.77"))
    await asyncio.to_thread(until, lambda: bool(processes_with("600.77")))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(until, lambda: not processes_with("600.77"))


async def test_asynchronous_methods_have_the_same_results(backend: LocalExecutionBackend) -> None:
    path = f"{backend.root_dir}/twin.py"
    assert (await backend.awrite(path, "print('one')\n")).error is None
    assert (await backend.aedit(path, "one", "two")).occurrences == 1
    assert (await backend.aexecute("python3 twin.py", timeout=20)).output == "two\n"
    assert [m["path"] for m in (await backend.aglob("*.py", str(backend.root_dir))).matches] == [
        path
    ]
    assert (await backend.agrep("two", str(backend.root_dir))).matches[0]["line"] == 1
    assert (await backend.als(str(backend.root_dir))).entries[0]["path"] == path
    assert (await backend.adownload_files([path]))[0].content == b"print('two')\n"
    assert (await backend.adelete(path)).error is None
    assert not Path(path).exists()


def test_no_thread_is_left(backend: LocalExecutionBackend) -> None:
    before = threading.active_count()
    backend.execute("true")
    assert threading.active_count() == before
