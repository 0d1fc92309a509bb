"""Functions to open files strictly below a directory with hostile contents.

Both implementations do the same. Names are resolved from an open directory. Links that stay below
it are followed. A link that leads out (an absolute link, or `..` past the root) raises OSError
EXDEV, even if the tree changes at the same time. To check a path first and open it afterwards is
not safe: the owner of the tree can replace a directory by a link in between.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
from collections import deque
from collections.abc import Sequence
from typing import Protocol

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""O_NONBLOCK: a FIFO without a writer, or a file under a lease, must not block the host."""

_MAX_LINKS = 40
_MAX_RACES = 16


class Resolver(Protocol):
    """Interface of the implementations."""

    def open(self, root: int, parts: Sequence[str], flags: int) -> int:
        """Open the path `parts` below the directory descriptor `root`. Return a new descriptor.

        `parts` are canonical: no `..`, slash or NUL. `flags` must not contain O_CREAT. Raises
        OSError.
        """
        ...


class WalkResolver:
    """Opens one component at a time from directory descriptors, on every POSIX system.

    This class reads links and inserts their targets itself, so that the kernel never follows one.
    """

    def open(self, root: int, parts: Sequence[str], flags: int) -> int:
        todo = deque(part.encode() for part in parts)
        opened: list[int] = [os.open(b".", DIRECTORY, dir_fd=root)]
        links = 0
        try:
            while todo:
                name = todo.popleft()
                if name == b"..":
                    if len(opened) == 1:
                        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
                    os.close(opened.pop())
                    continue
                try:
                    opened.append(
                        os.open(
                            name,
                            (DIRECTORY if todo else flags) | os.O_NOFOLLOW,
                            dir_fd=opened[-1],
                        )
                    )
                except OSError as error:
                    target = _link_target(name, opened[-1], error)
                    links += 1
                    if links > _MAX_LINKS:
                        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
                    if target.startswith(b"/"):
                        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV)) from None
                    todo.extendleft(
                        part for part in reversed(target.split(b"/")) if part not in (b"", b".")
                    )
            return opened.pop()
        finally:
            for descriptor in opened:
                os.close(descriptor)


def _link_target(name: bytes, directory: int, error: OSError) -> bytes:
    """Return the target of the link `name` if `error` came from O_NOFOLLOW.

    Otherwise, raises `error`.
    """
    if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
        raise error
    try:
        return os.readlink(name, dir_fd=directory)
    except OSError:
        raise error from None


class _OpenHow(ctypes.Structure):
    """The kernel's `struct open_how`."""

    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


class Openat2Resolver:
    """Opens a path with one system call: openat2 of Linux 5.6.

    RESOLVE_BENEATH and RESOLVE_NO_MAGICLINKS make the kernel check the links.
    """

    _SYSCALL = 437
    _RESOLVE_NO_MAGICLINKS = 0x02
    _RESOLVE_BENEATH = 0x08

    def __init__(self) -> None:
        self._syscall = ctypes.CDLL(None, use_errno=True).syscall
        self._syscall.restype = ctypes.c_long

    def open(self, root: int, parts: Sequence[str], flags: int) -> int:
        path = b"/".join(part.encode() for part in parts) or b"."
        follows = flags & ~os.O_NOFOLLOW
        how = _OpenHow(follows, 0, self._RESOLVE_BENEATH | self._RESOLVE_NO_MAGICLINKS)
        for _ in range(_MAX_RACES):
            descriptor: int = self._syscall(
                ctypes.c_long(self._SYSCALL),
                ctypes.c_int(root),
                ctypes.c_char_p(path),
                ctypes.byref(how),
                ctypes.c_size_t(ctypes.sizeof(how)),
            )
            if descriptor >= 0:
                return descriptor
            code = ctypes.get_errno()
            # EAGAIN: a rename raced with a `..` in a link, or the file is under a lease.
            if code not in (errno.EAGAIN, errno.EINTR):
                break
        raise OSError(code, os.strerror(code))


@functools.cache
def default_resolver() -> Resolver:
    """Return the openat2 resolver if this kernel permits the call, otherwise the walk."""
    if os.uname().sysname != "Linux":
        return WalkResolver()
    resolver = Openat2Resolver()
    root = os.open("/", DIRECTORY)
    try:
        os.close(resolver.open(root, (), DIRECTORY))
    except OSError as error:
        # Older container runtimes return EPERM for system calls that they do not know.
        if error.errno in (errno.ENOSYS, errno.EPERM):
            return WalkResolver()
        raise
    finally:
        os.close(root)
    return resolver
