"""What a sandbox may do: one frozen object that every platform's sandbox is built from."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from sandbox.own_directory.rules import FileRules

MAX_TIMEOUT = 600.0
"""No command runs longer than this many seconds, whatever was asked for."""


class Network(StrEnum):
    """What a sandbox reaches. Every value means a network namespace of its own."""

    NONE = "none"
    ALLOWLIST = "allowlist"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Mount:
    """A directory or file of the host inside the sandbox. `target` is an absolute path there.

    Links in `source` are followed, so no part of it may lie where a sandbox can write. Nor may
    `target` lie below a writable mount: bubblewrap makes the way to it while it still sees the
    host, and follows what links a command has left there. Of a
    `foreign` directory, which is the caller's own, only what commands add counts as their use of
    the disk, and files that programs outside the sandbox run are protected, as `rules` say.
    """

    source: Path
    target: str
    writable: bool = False
    foreign: bool = False
    rules: FileRules = field(default_factory=FileRules)


@dataclass(frozen=True, slots=True)
class Limits:
    """Resource limits of one command; bytes and seconds. None means no limit of that kind.

    `memory`, `file_size`, `open_files` and `cpu_seconds` hold for each process. `processes`
    (threads count), `memory_total` and `cpus` hold for the command and all it started.

    `memory_total` takes in memory files, /tmp, /dev/shm and the home. `cpus` is a number of
    processors; without the cpu controller of cgroups commands are only made nice, and a command
    may use what the host has until its wall time. `HostReport.limits` says what enforces each.

    `disk` is what the writable mounts may hold together, as allocated on disk, and `files` how
    many names. A command may start over a full tree, to delete, and is killed when the tree
    grows.

    `reserve` is what stays free on the file systems of the writable mounts: file tools write
    nothing that would use it, and a command that adds to its files while less is free is killed.

    `output` is what is kept of each of stdout and stderr, `live_output` what is shown of it while
    the command runs; a command that prints more than `output_flood` in all is killed. `tmp_size`
    is the size of each file system in memory (/tmp, /dev/shm, the home).
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
    """Everything that decides how a command is confined.

    `mounts` are bound in their order over the read-only system. `working_dir` is the absolute
    path inside the sandbox where commands start. `timeout` is the default wall time in seconds.
    `allowed_hosts` are what the network ALLOWLIST reaches, written as for `sandbox.egress.rules`.
    `uid` is the unprivileged host account that commands run as; None means the caller's own,
    or, when the caller is root, the owner of the first writable mount.
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
    """The interpreter of `execute_python`, as a path inside the sandbox."""
    unix_sockets: bool = False
    """Whether commands may make UNIX sockets that have a name. Only for mounts in which no program
    of the host listens: whoever can write to a socket's file can connect to it, also where the
    mount is read-only. Pairs of connected sockets are always allowed."""
