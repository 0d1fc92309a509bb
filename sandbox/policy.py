"""The permissions of a sandbox: one frozen object, which is the same on all platforms."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from sandbox.own_directory.rules import FileRules

MAX_TIMEOUT = 600.0
"""The longest time in seconds that a command may run, even if the caller requests more.

It does not apply to `BubblewrapSandbox.start_server`.
"""


class Network(StrEnum):
    """The hosts that a sandbox can reach. With each value, it has its own network namespace."""

    NONE = "none"
    ALLOWLIST = "allowlist"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Mount:
    """A directory or file of the host that commands see at the absolute path `target`.

    Links in `source` are followed, so no part of it may be in a directory that a sandbox can write.
    `target` must not be below a writable mount: bubblewrap creates the directories on the way while
    it still sees the host, and follows links that a command left there.

    A `foreign` directory is the caller's own. Only files that commands add there count as their
    disk use, and files that programs outside the sandbox run are protected according to `rules`.
    """

    source: Path
    target: str
    writable: bool = False
    foreign: bool = False
    rules: FileRules = field(default_factory=FileRules)


@dataclass(frozen=True, slots=True)
class InjectedFile:
    """A read-only file that exists only in the sandbox."""

    target: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Limits:
    """Resource limits of one command, in bytes and seconds. None means no limit of that kind.

    `memory`, `file_size`, `open_files` and `cpu_seconds` apply to each process. `processes`
    (including threads), `memory_total` and `cpus` apply to the command and all its children.

    `memory_total` includes memory files, /tmp, /dev/shm and the home directory. `cpus` is a number
    of processors. Without the cpu controller of cgroups, commands only get a lower priority, and a
    command may use all processors until its wall time limit. `HostReport.limits` names the
    enforcement of each limit.

    `disk` is the limit for all writable mounts together, in allocated bytes, and `files` the limit
    for the number of names. A command may start in a full tree, so that it can delete files; it is
    killed if the tree grows.

    `reserve` is the space that must stay free on the file systems of the writable mounts. File
    tools do not write into it, and a command that adds to its files while less is free is killed.

    `output` is how much of stdout and of stderr is kept, `live_output` how much of it is shown
    while the command runs. A command that prints more than `output_flood` in total is killed.
    `tmp_size` is the size of each file system in memory (/tmp, /dev/shm, the home directory).
    """

    processes: int | None = 256
    memory: int | None = 2 * 1024**3
    memory_total: int | None = 2 * 1024**3
    cpus: float | None = 2.0
    file_size: int | None = 512 * 1024**2
    disk: int | None = 2 * 1024**3
    files: int | None = 200_000
    reserve: int = 0
    open_files: int | None = 1024
    cpu_seconds: int | None = 600
    output: int = 1_000_000
    live_output: int = 200_000
    output_flood: int = 64 * 1024**2
    tmp_size: int = 256 * 1024**2


@dataclass(frozen=True, slots=True)
class SandboxPolicy:
    """All rules for the confinement of commands.

    Attributes:
        mounts: Bound in their order over the read-only system.
        working_dir: The absolute path inside the sandbox where commands start.
        timeout: The default wall time in seconds.
        allowed_hosts: The hosts of the network ALLOWLIST: see `sandbox.linux.egress.rules`.
        environment: Additional variables of commands, as pairs of name and value.
        uid: The unprivileged host account of commands. None: the account of this process or, if it
            is root, the owner of the first writable mount.
        gid: The group of commands if this process is root. None: the primary group of the account.
    """

    mounts: tuple[Mount, ...]
    working_dir: str
    timeout: float = 30.0
    network: Network = Network.NONE
    allowed_hosts: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    environment: tuple[tuple[str, str], ...] = ()
    uid: int | None = None
    gid: int | None = None
    python: str = "/usr/bin/python3"
    """The Python interpreter of `execute_python`, as a path inside the sandbox."""
    unix_sockets: bool = False
    """Whether commands may create UNIX sockets that have a name. Set it only for mounts in which no
    program of the host listens: a process that can write to a socket's file can connect to it, even
    if the mount is read-only. Pairs of connected sockets are always allowed."""
