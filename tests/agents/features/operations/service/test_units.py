"""The units keep the sandbox working and are what systemd expects."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from agents.doors.cli.errors import CliError
from agents.features.operations.service import install as installing
from agents.features.operations.service.install import (
    checked_listen,
    install,
    installed_listen,
    refuse_other_role,
    refuse_unreachable,
    uninstall,
    write_environment,
)
from agents.features.operations.service.units import MARK, Plan, Role, environment_of, files_of
from velproject.cli.commands.machines.up import passed_socket

PYTHON = "/usr/bin/python3"
DOCS = Path(__file__).parents[5] / "docs/operations/service.md"
ANALYZE = shutil.which("systemd-analyze")


class Programs:
    """Records the programs instead of running them: they would change this machine."""

    def __init__(self, fails: str = "") -> None:
        self.ran: list[Sequence[str]] = []
        self._fails = fails

    def __call__(self, command: Sequence[str]) -> None:
        self.ran.append(command)
        if self._fails and self._fails in command:
            raise CliError("failed")


def written(directory: Path) -> list[str]:
    found = []
    for role in Role:
        for path, text in files_of(Plan(PYTHON, role)).items():
            (directory / Path(path).name).write_text(text)
            found.append(str(directory / Path(path).name))
    return [path for path in found if not path.endswith(".conf")]


@pytest.mark.skipif(ANALYZE is None, reason="needs systemd-analyze")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    done = subprocess.run(
        ["systemd-analyze", "verify", *written(tmp_path)], capture_output=True, text=True
    )
    assert "vel" not in done.stderr
    assert done.returncode == 0


@pytest.mark.skipif(ANALYZE is None, reason="needs systemd-analyze")
def test_the_exposure_is_the_one_of_the_documentation(tmp_path: Path) -> None:
    written(tmp_path)
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", "./vel.service"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    found = re.search(r"exposure level for vel.service: ([0-9.]+)", done.stdout)
    assert found is not None, done.stderr
    assert float(found[1]) < 4
    assert f"exposure level {found[1]} " in DOCS.read_text()


def test_the_hardening_leaves_out_what_would_break_the_sandbox() -> None:
    for role in Role:
        text = "".join(files_of(Plan(PYTHON, role)).values())
        for name in (
            "RestrictNamespaces",
            "ProtectKernelTunables",
            "ProtectHostname",
            "ProcSubset",
        ):
            assert f"\n{name}=" not in text
        assert "\nNoNewPrivileges=yes\n" in text
        assert "\nDelegate=yes\n" in text


def test_the_environment_file_warns_of_comments_behind_values() -> None:
    for role in Role:
        text = environment_of(role)
        assert "# Write a comment on its own line: behind a value" in text
        assert not [line for line in text.splitlines() if " #" in line]


def test_installing_twice_changes_nothing_and_keeps_the_settings(tmp_path: Path) -> None:
    install(Plan(PYTHON), Programs(), root=tmp_path)
    settings = tmp_path / "etc/vel/vel.env"
    assert settings.stat().st_mode & 0o777 == 0o600
    settings.write_text("DATABASE_URL=mine\n")
    settings.chmod(0o644)
    again = Programs()
    assert install(Plan(PYTHON), again, root=tmp_path) == [
        "created the account vel",  # this test has none
        "started vel.service",
    ]
    assert settings.read_text() == "DATABASE_URL=mine\n"
    assert settings.stat().st_mode & 0o777 == 0o600
    assert not any("restart" in command for command in again.ran)


def test_a_changed_unit_restarts_the_service(tmp_path: Path) -> None:
    install(Plan(PYTHON), Programs(), root=tmp_path)
    again = Programs()
    install(Plan("/opt/vel/bin/python"), again, root=tmp_path)
    assert ("systemctl", "restart", "vel.service") in again.ran


def test_a_repeated_installation_keeps_the_address_and_a_new_one_restarts_the_socket(
    tmp_path: Path,
) -> None:
    assert installed_listen(tmp_path) is None
    install(Plan(PYTHON, listen="[::1]:9000"), Programs(), root=tmp_path)
    assert installed_listen(tmp_path) == "[::1]:9000"
    again = Programs()
    install(Plan(PYTHON, listen="127.0.0.1:9001"), again, root=tmp_path)
    assert ("systemctl", "restart", "vel.socket", "vel.service") in again.ran
    assert installed_listen(tmp_path) == "127.0.0.1:9001"


@pytest.mark.parametrize("role", Role)
def test_a_machine_does_not_get_the_service_of_another_role_as_well(
    tmp_path: Path, role: Role
) -> None:
    install(Plan(PYTHON, role), Programs(), root=tmp_path)
    refuse_other_role(role, tmp_path)
    (other,) = set(Role) - {role}
    with pytest.raises(CliError, match="run `vel service uninstall` first"):
        refuse_other_role(other, tmp_path)


def test_a_failed_start_leaves_no_unit(tmp_path: Path) -> None:
    with pytest.raises(CliError):
        install(Plan(PYTHON), Programs(fails="enable"), root=tmp_path)
    assert not list((tmp_path / "etc/systemd").rglob("*.*"))


def test_a_failed_change_puts_the_earlier_unit_back(tmp_path: Path) -> None:
    install(Plan(PYTHON), Programs(), root=tmp_path)
    unit = tmp_path / "etc/systemd/system/vel.service"
    before = unit.read_text()
    with pytest.raises(CliError):
        install(Plan("/opt/vel/bin/python"), Programs(fails="enable"), root=tmp_path)
    assert unit.read_text() == before


@pytest.mark.parametrize("fails", ["daemon-reload", "enable"])
def test_a_failed_installation_removes_what_it_has_created(tmp_path: Path, fails: str) -> None:
    programs = Programs(fails=fails)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(CliError):
        install(Plan(PYTHON), programs, root=tmp_path)
    assert [path for path in tmp_path.rglob("*") if not path.is_dir()] == before == []
    assert not (tmp_path / "etc/vel").exists()
    assert programs.ran[-1] == ("userdel", "vel")
    disabled = ("systemctl", "disable", "--now", "vel.socket", "vel.service")
    assert (disabled in programs.ran) == (fails == "enable")


def test_a_failed_installation_keeps_what_existed_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installing, "has_account", lambda: True)
    settings = tmp_path / "etc/vel/vel.env"
    settings.parent.mkdir(parents=True)
    settings.write_text("DATABASE_URL=mine\n")
    programs = Programs(fails="enable")
    with pytest.raises(CliError):
        install(Plan(PYTHON), programs, root=tmp_path)
    assert settings.read_text() == "DATABASE_URL=mine\n"
    assert not any(command[0] in ("useradd", "userdel") for command in programs.ran)


def test_an_account_with_files_stays_after_a_failed_installation(tmp_path: Path) -> None:
    """Otherwise, the next account with its number could read them."""

    class Starts(Programs):
        def __call__(self, command: Sequence[str]) -> None:
            if "enable" in command:
                (tmp_path / "var/lib/vel").mkdir(parents=True)
                (tmp_path / "var/lib/vel/secret_key").write_text("secret")
            super().__call__(command)

    programs = Starts(fails="enable")
    with pytest.raises(CliError, match=r"failed. Not undone: the account vel stays, because"):
        install(Plan(PYTHON), programs, root=tmp_path)
    assert ("userdel", "vel") not in programs.ran
    assert (tmp_path / "var/lib/vel/secret_key").exists()


def test_a_failed_restart_starts_the_earlier_unit_again(tmp_path: Path) -> None:
    install(Plan(PYTHON), Programs(), root=tmp_path)
    unit = tmp_path / "etc/systemd/system/vel.service"
    before = unit.read_text()
    programs = Programs(fails="restart")
    with pytest.raises(CliError, match="Not undone: failed"):
        install(Plan("/opt/vel/bin/python"), programs, root=tmp_path)
    assert unit.read_text() == before
    assert programs.ran[-3:-1] == [
        ("systemctl", "daemon-reload"),
        ("systemctl", "restart", "vel.service"),
    ]


def test_a_unit_of_somebody_else_is_not_replaced_or_removed(tmp_path: Path) -> None:
    unit = tmp_path / "etc/systemd/system/vel.service"
    unit.parent.mkdir(parents=True)
    unit.write_text("[Service]\nExecStart=/bin/true\n")
    programs = Programs()
    for act in (lambda: install(Plan(PYTHON), programs, root=tmp_path),
                lambda: uninstall(programs, root=tmp_path)):  # fmt: skip
        with pytest.raises(CliError, match="was not written by Vel"):
            act()
    assert programs.ran == []
    assert not (tmp_path / "etc/vel").exists()


def test_a_linked_unit_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text(MARK)
    unit = tmp_path / "etc/systemd/system/vel.service"
    unit.parent.mkdir(parents=True)
    unit.symlink_to(target)
    with pytest.raises(CliError, match="was not written by Vel"):
        install(Plan(PYTHON), Programs(), root=tmp_path)


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_a_linked_environment_file_is_refused(tmp_path: Path, link: object) -> None:
    target = tmp_path / "target"
    target.write_text("")
    target.chmod(0o644)
    link(tmp_path / "vel.env", target)  # type: ignore[operator]
    with pytest.raises(CliError, match=r"link|plain"):
        write_environment(tmp_path / "vel.env", "")
    assert target.stat().st_mode & 0o777 == 0o644


def test_uninstalling_keeps_the_settings(tmp_path: Path) -> None:
    for role in Role:
        install(Plan(PYTHON, role), Programs(), root=tmp_path)
    programs = Programs()
    assert len(uninstall(programs, root=tmp_path)) == 3
    assert not list((tmp_path / "etc/systemd").rglob("*.*"))
    assert (tmp_path / "etc/vel/vel.env").exists()
    assert uninstall(programs, root=tmp_path) == []


@pytest.mark.parametrize(
    "listen", ["8000", "127.0.0.1:0", "127.0.0.1:70000", "1.1.1.1:80\nUser=root", "%n:80", "a b:1"]
)
def test_an_address_that_could_change_the_unit_is_refused(listen: str) -> None:
    with pytest.raises(CliError):
        checked_listen(listen)


@pytest.mark.parametrize(
    "path",
    ["/home/ada/vel/bin/python", "/root/vel", "/opt/a b/python", "/opt/%n", "/opt/a\nUser=0"],
)
def test_an_interpreter_that_the_service_cannot_use_is_refused(path: str) -> None:
    with pytest.raises(CliError):
        refuse_unreachable([path])


def test_the_account_of_a_person_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installing, "ACCOUNT", "nobody")
    with pytest.raises(CliError, match="not a system account"):
        install(Plan(PYTHON), Programs(), root=tmp_path)
    assert not (tmp_path / "etc").exists()


def test_a_socket_for_another_process_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LISTEN_PID", "1")
    monkeypatch.setenv("LISTEN_FDS", "1")
    assert passed_socket() is None
    assert "LISTEN_FDS" not in os.environ


def test_the_socket_of_systemd_is_taken() -> None:
    """A new process is needed, because the socket has a fixed descriptor."""
    bound = socket.create_server(("127.0.0.1", 0))
    code = (
        "import os; os.dup2(int(os.environ['PASSED']), 3);"
        "os.environ |= {'LISTEN_PID': str(os.getpid()), 'LISTEN_FDS': '1'};"
        "from velproject.cli.commands.machines.up import listening_socket;"
        "print(listening_socket('192.0.2.1', 1).getsockname()[1], 'LISTEN_PID' in os.environ)"
    )
    with bound:
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PASSED": str(bound.fileno())},
            pass_fds=[bound.fileno()],
            capture_output=True,
            text=True,
        )
        assert done.stdout.split() == [str(bound.getsockname()[1]), "False"], done.stderr
