"""`create_sandbox`: a directory of the host at its own path."""

import os
import platform
import socket
from pathlib import Path

import pytest

from sandbox import BubblewrapSandbox, SandboxNotAvailableError, create_sandbox
from sandbox.errors import SandboxSetupError
from sandbox.workspace import uid_for
from tests.sandbox.places import AS_ROOT

pytestmark = pytest.mark.bubblewrap


def test_the_working_directory_is_created_and_mounted_at_its_own_path(place: Path) -> None:
    directory = place / "new/project"
    sandbox = create_sandbox(str(directory))
    assert isinstance(sandbox, BubblewrapSandbox)
    result = sandbox.execute("pwd; echo made > file; ls")
    assert result.stdout == f"{directory}\nfile\n"
    assert (directory / "file").read_text() == "made\n"
    assert directory.stat().st_uid == (uid_for(0) if AS_ROOT else os.geteuid())
    assert sandbox.working_dir == str(directory)


def test_allowed_paths_can_be_read_and_not_written(place: Path) -> None:
    data = place / "data"
    data.mkdir(mode=0o777)
    (data / "in").write_text("input")
    data.chmod(0o777)
    sandbox = create_sandbox(str(place / "work"), allowed_paths=[str(data)])
    assert sandbox.execute(f"cat {data}/in").stdout == "input"
    assert "Read-only file system" in sandbox.execute(f"echo x > {data}/out").stderr
    assert sandbox.allowed_paths == [str(data)]
    assert not create_sandbox(str(place / "work")).execute(f"ls {data}").success


def test_defaults_of_the_sandbox(place: Path) -> None:
    sandbox = create_sandbox(str(place / "work"), timeout=5)
    assert (sandbox.timeout, sandbox.network, sandbox.allowed_paths) == (5.0, False, [])
    assert create_sandbox(str(place / "work")).timeout == 30


def test_the_working_directory_may_be_in_an_allowed_path(place: Path) -> None:
    sandbox = create_sandbox(str(place / "work"), allowed_paths=[str(place)])
    assert sandbox.execute("echo x > file && cat file").stdout == "x\n"
    assert not sandbox.execute(f"touch {place}/file").success


@pytest.mark.parametrize(
    "path", ["/", "/proc", "/proc/self", "/sys", "/dev/shm", "/run", "/run/user", "/boot", "//"]
)
def test_paths_that_expose_the_machine_are_never_shown(place: Path, path: str) -> None:
    link = place / "link"
    link.symlink_to(path)
    for given in (path, str(link), f"{place}/../../..{path}"):
        with pytest.raises(SandboxSetupError, match=r"never shows|directory for keys"):
            create_sandbox(str(place / "work"), allowed_paths=[given])
        with pytest.raises(SandboxSetupError, match="never shows"):
            create_sandbox(given)


def test_keys_and_whole_homes_are_not_shown(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(place))
    (place / ".ssh").mkdir()
    (place / "link").symlink_to(place / ".ssh")
    for path in (place, place.parent, place / ".ssh", place / "link", place / ".ssh/id"):
        with pytest.raises(SandboxSetupError, match=r"keys"):
            create_sandbox(str(place / "work"), allowed_paths=[str(path)])
    for path in (place, place.parent, place / ".ssh"):
        with pytest.raises(SandboxSetupError):
            create_sandbox(str(path))


def test_shared_directories_cannot_be_working_directories() -> None:
    for path in ("/tmp", "/var/tmp", "/home", "/var/lib"):
        with pytest.raises(SandboxSetupError, match="separate directory"):
            create_sandbox(path)


def test_a_socket_cannot_be_an_allowed_path(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place / "service"))
        with pytest.raises(SandboxSetupError, match="socket"):
            create_sandbox(str(place / "work"), allowed_paths=[str(place / "service")])
    with pytest.raises(SandboxSetupError, match="does not exist"):
        create_sandbox(str(place / "work"), allowed_paths=[str(place / "missing")])


def test_a_file_cannot_be_the_working_directory(place: Path) -> None:
    (place / "file").write_text("")
    for path in (place / "file", place / "file/below"):
        with pytest.raises(SandboxSetupError, match="working directory"):
            create_sandbox(str(path))


def test_system_directories_contain_no_working_directory(place: Path) -> None:
    (place / "link").symlink_to("/usr/local")
    for path in ("/usr", "/etc", "/etc/x", "/usr/local/x", "/bin/x", f"{place}/link/x"):
        with pytest.raises(SandboxSetupError, match="directory for your own files"):
            create_sandbox(path)
    assert not Path("/usr/local/x").exists()


@pytest.mark.root
def test_a_working_directory_of_root_is_refused(place: Path) -> None:
    with pytest.raises(SandboxSetupError, match=r"belongs to root.*chown"):
        create_sandbox(str(place))
    (place / "closed").mkdir(mode=0o700)
    (place / "closed/work").mkdir()
    os.chown(place / "closed/work", 65534, 65534)
    with pytest.raises(SandboxSetupError, match="cannot enter"):
        create_sandbox(str(place / "closed/work"))


def test_other_systems_have_no_sandbox_yet(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for system in ("Darwin", "Windows"):
        monkeypatch.setattr(platform, "system", lambda name=system: name)
        with pytest.raises(SandboxNotAvailableError, match=system):
            create_sandbox(str(place / "work"))
