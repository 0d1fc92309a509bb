"""Installing and removing the units. Everything is checked before the first change."""

from __future__ import annotations

import errno
import os
import pwd
import re
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from agents.doors.cli.errors import FAILED, CliError
from agents.features.operations.service.units import (
    ACCOUNT,
    ENVIRONMENT_FILE,
    MARK,
    SOCKET,
    STATE,
    Plan,
    Role,
    environment_of,
    files_of,
    service_of,
    to_enable,
)

Run = Callable[[Sequence[str]], None]
"""Runs a program. Raises `CliError` if it fails."""

CREATE_ACCOUNT = (
    "useradd", "--system", "--user-group", "--home-dir", STATE, "--no-create-home",
    "--shell", "/usr/sbin/nologin", ACCOUNT,
)  # fmt: skip
DELETE_ACCOUNT = ("userdel", ACCOUNT)
_PLAIN_PATH = re.compile(r"/[A-Za-z0-9_./+-]+")
_LISTEN = re.compile(r"(?:[0-9.]+|\[[0-9A-Fa-f:.]+\]):([1-9][0-9]{0,4})")
_HIDDEN = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")  # noqa: S108
"""Directories that the service does not see."""
_FIRST_PERSON = 1000
"""The accounts of people start with this uid."""


def refuse_without_systemd(root: Path = Path("/")) -> None:
    """Raise `CliError` if this machine was not booted with systemd."""
    if not (root / "run/systemd/system").is_dir():
        raise CliError(
            "This machine does not run systemd. Preview the units with `vel service install "
            "--dry-run`, or start `vel up` with your own supervisor.",
            exit_code=FAILED,
        )


def refuse_without_root() -> None:
    """Raise `CliError` if this account is not root."""
    if os.geteuid() != 0:
        raise CliError("Only root can do this: repeat it with sudo.", exit_code=FAILED)


def checked_listen(listen: str) -> str:
    """Return `listen`, an address and a port. Raises `CliError` if it is something else."""
    found = _LISTEN.fullmatch(listen)
    if found is None or int(found[1]) > 65535:
        raise CliError(f"Expected ADDRESS:PORT, such as 127.0.0.1:8000, got {listen!r}.")
    return listen


def installed_listen(root: Path = Path("/")) -> str | None:
    """Return the address of the web server that is installed, or None. Raises `CliError`."""
    unit = _unit(root, SOCKET)
    if not unit.exists():
        return None
    refuse_foreign_file(unit)
    found = re.search(r"^ListenStream=(.*)$", unit.read_text(), re.MULTILINE)
    return checked_listen(found[1]) if found else None


def refuse_other_role(role: Role, root: Path = Path("/")) -> None:
    """Raise `CliError` if the machine has the service of another role."""
    if others := [each for each in roles_here(root) if each is not role]:
        name = service_of(others[0])
        advice = "Add --workers-only" if others[0] is Role.WORKERS else "Leave --workers-only out"
        raise CliError(
            f"This machine has {name}. {advice}, or run `vel service uninstall` first.",
            exit_code=FAILED,
        )


def refuse_unreachable(paths: Sequence[str]) -> None:
    """Raise `CliError` if the service could not see one of `paths`, or a unit not name it."""
    for path in paths:
        for each in (path, os.path.realpath(path)):
            if _PLAIN_PATH.fullmatch(each) is None:
                raise CliError(
                    f"A unit cannot name {each!r}. Install Vel in a directory with a plain name, "
                    "such as /opt/vel.",
                    exit_code=FAILED,
                )
            if any(each == one or each.startswith(one + "/") for one in _HIDDEN):
                raise CliError(
                    f"The service cannot see {each}. Install Python and Vel for all accounts, "
                    "for example in /opt/vel.",
                    exit_code=FAILED,
                )


def own_paths() -> tuple[str, ...]:
    """Return the paths of the interpreter and of this Vel."""
    return (sys.executable, sys.prefix, sys.base_prefix, str(Path(__file__)))


def has_account() -> bool:
    """Return whether the account exists. Raises `CliError` if it is not a system account."""
    try:
        found = pwd.getpwnam(ACCOUNT)
    except KeyError:
        return False
    if found.pw_uid == 0 or found.pw_uid >= _FIRST_PERSON:
        raise CliError(
            f"The account {ACCOUNT} is not a system account (uid {found.pw_uid}). Rename it first.",
            exit_code=FAILED,
        )
    return True


def refuse_foreign_file(path: Path) -> None:
    """Raise `CliError` if `path` exists and Vel did not write it."""
    try:
        kind = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(kind) or not path.read_text(errors="replace").startswith(MARK):
        raise CliError(
            f"{path} was not written by Vel. Move it away, and repeat the command.",
            exit_code=FAILED,
        )


def write(path: Path, text: str, mode: int) -> bool:
    """Replace `path` by `text` in one step, and set its mode. Return whether the text changed."""
    if path.is_file() and not path.is_symlink() and path.read_text() == text:
        path.chmod(mode)
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(dir=path.parent, prefix=".vel-")
    try:
        with os.fdopen(number, "w") as file:
            os.fchmod(number, mode)
            file.write(text)
            file.flush()
            os.fsync(number)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink()
        raise
    return True


def write_environment(path: Path, text: str) -> bool:
    """Create the environment file, or keep the content of the one that exists.

    Only this account can read it, also if it existed before. Returns whether it was created. Raises
    `CliError` if it is a link or not a file.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return write(path, text, 0o600)
    except OSError as error:
        message = f"Cannot open {path} ({error.strerror}). Expected a file of root, not a link."
        raise CliError(message, exit_code=FAILED) from None
    try:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            raise CliError(f"{path} is not a plain file. Move it away.", exit_code=FAILED)
        os.fchown(number, os.geteuid(), os.getegid())
        os.fchmod(number, 0o600)
    finally:
        os.close(number)
    return False


def install(plan: Plan, run: Run, *, root: Path = Path("/")) -> list[str]:
    """Write, enable and start the units of `plan`, and return what was done.

    After an error, what this call has created is removed, and the earlier units are put back.
    Raises `CliError`.
    """
    files = {root / path.lstrip("/"): text for path, text in files_of(plan).items()}
    for path in files:
        refuse_foreign_file(path)
    ways_back: list[Callable[[], None]] = []
    try:
        return _install(plan, files, run, root, ways_back)
    except BaseException as error:
        problems = _go_back(ways_back)
        if problems and isinstance(error, Exception):
            message = f"{str(error).rstrip('.')}. Not undone: {'; '.join(problems)}"
            raise CliError(message, exit_code=FAILED) from error
        raise


def _install(
    plan: Plan, files: dict[Path, str], run: Run, root: Path, ways_back: list[Callable[[], None]]
) -> list[str]:
    """Do the steps of `install`. Before each one, add its way back to `ways_back`."""
    done: list[str] = []
    if not has_account():
        state = root / STATE.lstrip("/")
        is_new = not state.exists()
        run(CREATE_ACCOUNT)
        ways_back.append(lambda: _delete_account(run, state, is_new=is_new))
        done.append(f"created the account {ACCOUNT}")
    environment = root / ENVIRONMENT_FILE.lstrip("/")
    if not environment.parent.exists():
        ways_back.append(lambda: _remove_empty(environment.parent))
    if write_environment(environment, environment_of(plan.role)):
        ways_back.append(environment.unlink)
        done.append(f"wrote {environment}")
    earlier = {path: path.read_text() if path.exists() else None for path in files}
    changed = {path.name for path, old in earlier.items() if old not in (None, files[path])}
    # A socket has its old address until it is restarted. systemd stops its service before it.
    names = to_enable(plan.role) if SOCKET in changed else (service_of(plan.role),)
    restart = ("systemctl", "restart", *names)
    reload = ("systemctl", "daemon-reload")
    # The ways back are taken in the reverse order: put the files back, reload them, restart.
    started: list[Sequence[str]] = []
    ways_back.append(lambda: run(restart) if restart in started else None)
    ways_back.append(lambda: run(reload) if reload in started else None)
    for path, old in earlier.items():
        ways_back.append(partial(_put_back, path, old))
        if write(path, files[path], 0o644):
            done.append(f"wrote {path}")
    run(reload)
    started.append(reload)
    new = [name for name in to_enable(plan.role) if earlier[_unit(root, name)] is None]
    if new:
        ways_back.append(lambda: run(("systemctl", "disable", "--now", *new)))
    run(("systemctl", "enable", "--now", *to_enable(plan.role)))
    if changed:
        started.append(restart)
        run(restart)
    done.append(f"started {service_of(plan.role)}")
    return done


def _go_back(ways_back: Sequence[Callable[[], None]]) -> list[str]:
    """Undo all steps, the last one first, and return what has failed."""
    problems = []
    for way in reversed(ways_back):
        try:
            way()
        except (CliError, OSError) as error:
            problems.append(str(error))
    return problems


def _put_back(path: Path, old: str | None) -> None:
    if old is None:
        path.unlink(missing_ok=True)
    else:
        write(path, old, 0o644)


def _delete_account(run: Run, state: Path, *, is_new: bool) -> None:
    """Delete the account that this call has created, unless it has files in `state`.

    Files without an account would belong to the next one that gets its number. With `is_new`, this
    call has created the directory, so it is removed if it is empty.
    """
    if is_new:
        _remove_empty(state)
    if state.exists() and any(state.iterdir()):
        raise CliError(f"the account {ACCOUNT} stays, because {state} has files.")
    run(DELETE_ACCOUNT)


def _remove_empty(directory: Path) -> None:
    try:
        directory.rmdir()
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise


def _unit(root: Path, name: str) -> Path:
    return root / "etc/systemd/system" / name


def uninstall(run: Run, *, root: Path = Path("/")) -> list[str]:
    """Stop and remove the units, and return what was done. Data and settings stay."""
    units = root / "etc/systemd/system"
    names = ("vel.service", "vel.socket", "vel-worker.service")
    here = [units / name for name in names if (units / name).exists()]
    journal = root / "etc/systemd/journald@vel.conf"
    for path in (*here, journal):
        refuse_foreign_file(path)
    if here:
        run(("systemctl", "disable", "--now", *(path.name for path in here)))
    for path in here:
        path.unlink()
    journal.unlink(missing_ok=True)
    if here:
        run(("systemctl", "daemon-reload"))
    return [f"removed {path}" for path in here]


def run_program(command: Sequence[str]) -> None:
    """Run `command`. Raises `CliError` with the first line of its errors, or if it is missing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise CliError(f"{command[0]} is not installed.", exit_code=FAILED) from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise CliError(f"`{' '.join(command)}` failed: {lines[0]}", exit_code=FAILED)


def roles_here(root: Path = Path("/")) -> list[Role]:
    """Return the roles whose units are installed."""
    units = root / "etc/systemd/system"
    return [role for role in Role if (units / service_of(role)).exists()]
