"""The file system that commands see: the arguments of bubblewrap for a policy.

Everything is read-only, except the writable mounts and the size-limited file systems in memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import PurePosixPath

from sandbox.errors import SandboxSetupError
from sandbox.policy import InjectedFile, Mount, Network, SandboxPolicy

HOME = "/home/sandbox"
NOBODY = 65534
PYTHON = "/usr/bin/python3"
SHELL = "/usr/bin/bash"

ENVIRONMENT: dict[str, str] = {
    # inotify is not available: without this variable, these libraries would fail instead of poll.
    "CHOKIDAR_USEPOLLING": "1",
    "WATCHPACK_POLLING": "true",
    "HOME": HOME,
    "LANG": "C.UTF-8",
    "LOGNAME": "nobody",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "PYTHONDONTWRITEBYTECODE": "1",
    # Unbuffered output: text from before a time limit is not lost.
    "PYTHONUNBUFFERED": "1",
    "SHELL": SHELL,
    "TERM": "dumb",
    "TMPDIR": "/tmp",  # noqa: S108 - the sandbox's own
    "USER": "nobody",
}

_ETC_FILES: dict[str, bytes] = {
    "/etc/passwd": (
        b"root:x:0:0:root:/:/usr/sbin/nologin\n"
        b"nobody:x:65534:65534:nobody:/home/sandbox:/usr/bin/bash\n"
    ),
    "/etc/group": b"root:x:0:\nnogroup:x:65534:\n",
    "/etc/hosts": b"127.0.0.1 localhost sandbox\n::1 localhost\n",
    "/etc/nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files\n",
}

_ETC_BINDS = ("/etc/ld.so.cache", "/etc/alternatives")
_CERTIFICATE_BINDS = ("/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted")
_USR_LINKS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_RESERVED_TARGETS = ("/proc", "/sys", "/dev")


def _isolation() -> list[str]:
    return [
        *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"),
        *("--unshare-net", "--unshare-cgroup", "--disable-userns", "--assert-userns-disabled"),
        *("--uid", str(NOBODY), "--gid", str(NOBODY), "--cap-drop", "ALL"),
        *("--hostname", "sandbox", "--die-with-parent", "--new-session"),
    ]


def _system() -> Iterator[str]:
    yield from ("--ro-bind", "/usr", "/usr")
    for path in _USR_LINKS:
        # On a system without a merged /usr, these are separate directories.
        if os.path.islink(path):
            yield from ("--symlink", os.readlink(path), path)
        elif os.path.isdir(path):
            yield from ("--ro-bind", path, path)
    yield from ("--dir", "/etc", "--dir", "/run")
    for path in _ETC_BINDS:
        yield from ("--ro-bind-try", path, path)
    # A link into /usr needs no mount. A local time zone in a plain file is omitted (UTC).
    zone = os.path.realpath("/etc/localtime")
    if zone.startswith("/usr/"):
        yield from ("--symlink", zone, "/etc/localtime")


def _memory_file_systems(size: int) -> Iterator[str]:
    yield from ("--proc", "/proc", "--dev", "/dev")
    for path, mode in (("/dev/shm", "1777"), ("/tmp", "1777"), (HOME, "0700")):  # noqa: S108
        yield from ("--perms", mode, "--size", str(size), "--tmpfs", path)
    # A relative link, because bubblewrap resolves it before the new root becomes the root.
    yield from ("--dir", "/var", "--symlink", "../tmp", "/var/tmp")  # noqa: S108


def _mounts(mounts: tuple[Mount, ...]) -> Iterator[str]:
    for mount in mounts:
        _check_target(mount.target)
        yield from ("--bind" if mount.writable else "--ro-bind", str(mount.source), mount.target)


def _check_target(target: str) -> None:
    path = PurePosixPath(target)
    reserved = any(path.is_relative_to(tree) for tree in _RESERVED_TARGETS)
    plain = path.is_absolute() and str(path) == target and ".." not in path.parts
    if not plain or target == "/" or reserved:
        raise SandboxSetupError(
            f"A mount at {target!r} is not allowed: use a normalised absolute path "
            f"that is not / and not in {', '.join(_RESERVED_TARGETS)}."
        )


def _environment(policy: SandboxPolicy, extra: dict[str, str]) -> Iterator[str]:
    for name, value in (ENVIRONMENT | dict(policy.environment) | extra).items():
        if not name or "=" in name:
            raise SandboxSetupError(
                f"The policy sets an environment variable named {name!r}; "
                "a name must not be empty or contain '='."
            )
        yield from ("--setenv", name, value)


def bwrap_arguments(policy: SandboxPolicy, environment: dict[str, str]) -> list[str]:
    """Return all arguments of bubblewrap except file descriptors and the command.

    Raises `SandboxSetupError` for a policy that bubblewrap cannot express.
    """
    arguments = _isolation()
    arguments += ["--clearenv", *_environment(policy, environment)]
    arguments += _system()
    if policy.network is not Network.NONE:
        for path in _CERTIFICATE_BINDS:
            arguments += ["--ro-bind-try", path, path]
    arguments += _memory_file_systems(policy.limits.tmp_size)
    arguments += _mounts(policy.mounts)
    arguments += ["--chdir", policy.working_dir]
    return arguments


def sealing_arguments() -> list[str]:
    """Return the arguments that make everything else read-only, after all files and mounts."""
    return ["--remount-ro", "/", "--remount-ro", "/dev", "--remount-ro", "/proc"]


def system_files() -> list[InjectedFile]:
    return [InjectedFile(target, content) for target, content in _ETC_FILES.items()]
