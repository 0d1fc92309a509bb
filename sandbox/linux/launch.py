"""Start of bubblewrap, until the command is ready to run."""

from __future__ import annotations

import fcntl
import os
import select
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sandbox.account import Account, drop_to
from sandbox.descriptors import Descriptors, sealed_memory
from sandbox.errors import SandboxSetupError
from sandbox.linux.launched import Launched, Pipes
from sandbox.linux.namespace import bwrap_arguments, sealing_arguments, system_files
from sandbox.markers import marked_argument
from sandbox.policy import InjectedFile, SandboxPolicy


@dataclass(frozen=True, slots=True)
class Command:
    """A command to run in a sandbox: its arguments, and files and variables only for it."""

    argv: Sequence[str]
    files: tuple[InjectedFile, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    stdin: bytes | int | None = None
    """The standard input of the command: all its bytes, or the read end of the caller's pipe."""
    marker: str = ""
    descriptors: tuple[int, ...] = ()
    """The descriptors that the command inherits, with the same numbers."""


def launch(
    bwrap: Path,
    policy: SandboxPolicy,
    account: Account,
    command: Command,
    prepare: Callable[[int], None],
    protection: Sequence[str] = (),
) -> Launched:
    """Set up a sandbox in which `command` waits to run as `account`.

    Call `open_gate` of the result to let the command run. `prepare(pid)` is called with the first
    process, before the command can run and while bubblewrap continues its set-up. If it raises
    OSError, the set-up has failed. `protection` has arguments of bubblewrap for mounts on top of
    those of the policy.

    Raises `SandboxSetupError`; in this case no process is left.
    """
    prefix = drop_to(account)
    with Descriptors() as ours, Descriptors() as theirs:
        status, writing = _pipe_from(ours, theirs)
        # Open for reading as well: if this process dies, bubblewrap's report still has a reader. A
        # broken pipe would end only bubblewrap's outer process, and its inner process would wait
        # for ever.
        their_status = theirs.add(os.open(f"/proc/self/fd/{writing}", os.O_RDWR | os.O_CLOEXEC))
        stdout, their_stdout = _pipe_from(ours, theirs)
        stderr, their_stderr = _pipe_from(ours, theirs)
        arrival, their_arrival = _pipe_to(ours, theirs)
        gate, their_gate = _pipe_to(ours, theirs)
        fcntl.fcntl(arrival, fcntl.F_SETPIPE_SZ, select.PIPE_BUF)  # one page: one byte fills it
        os.write(arrival, b"\0")

        inherited = [their_status, their_arrival, their_gate, *command.descriptors]
        arguments = [*bwrap_arguments(policy, command.environment), *protection]
        for file in (*system_files(), *command.files):
            content = theirs.add(sealed_memory("vel-file", file.content))
            inherited.append(content)
            arguments += ["--perms", "0444", "--file", str(content), file.target]
        arguments += sealing_arguments()
        arguments += ["--json-status-fd", str(their_status)]
        arguments += ["--block-fd", str(their_arrival), "--seccomp", str(their_gate)]
        listed = theirs.add(sealed_memory("vel-arguments", _nul_separated(arguments)))
        inherited.append(listed)

        mark = ["--unsetenv", marked_argument(command.marker)] if command.marker else []
        argv = [*prefix, str(bwrap), "--args", str(listed), *mark, "--", *command.argv]
        stdin = _stdin(theirs, command.stdin)
        process = _spawn(argv, stdin, their_stdout, their_stderr, inherited)
        launched = Launched(
            process,
            Pipes(*map(ours.keep, (status, stdout, stderr, arrival, gate))),
            unix_sockets=policy.unix_sockets,
        )
    try:
        launched.await_first_process()
        try:
            prepare(launched.pid)
        except OSError as error:
            raise launched.setup_error(f"its limits could not be set ({error})") from error
        launched.await_arrival_at_gate()
    except BaseException:
        launched.end()
        launched.close()
        raise
    return launched


def _pipe_from(ours: Descriptors, theirs: Descriptors) -> tuple[int, int]:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    return ours.add(reading), theirs.add(writing)


def _pipe_to(ours: Descriptors, theirs: Descriptors) -> tuple[int, int]:
    reading, writing = os.pipe()
    return ours.add(writing), theirs.add(reading)


def _stdin(theirs: Descriptors, content: bytes | int | None) -> int:
    if content is None:
        return theirs.add(os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC))
    if isinstance(content, int):
        return content
    return theirs.add(sealed_memory("vel-stdin", content))


def _nul_separated(arguments: list[str]) -> bytes:
    for argument in arguments:
        if "\0" in argument:
            raise SandboxSetupError(f"A path or variable of the policy contains NUL: {argument!r}.")
    return b"".join(os.fsencode(argument) + b"\0" for argument in arguments)


def _spawn(
    argv: list[str], stdin: int, stdout: int, stderr: int, inherited: list[int]
) -> subprocess.Popen[bytes]:
    try:
        # A separate session: Ctrl-C at a terminal reaches only the caller, which decides. The empty
        # environment keeps the host's variables out of /proc/1/environ. No option disables vfork.
        return subprocess.Popen(
            argv,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=inherited,
            env={},
            cwd="/",
            start_new_session=True,
        )
    except (ValueError, UnicodeEncodeError) as error:
        raise SandboxSetupError(f"The command cannot be passed to a program: {error}.") from error
    except OSError as error:
        raise SandboxSetupError(f"{argv[0]} could not be started: {error}.") from error
