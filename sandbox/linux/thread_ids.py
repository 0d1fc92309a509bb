"""Setting of the real ids of one thread to those of another account.

The kernel lets a process set the limits of another process if their real ids are equal, or with
CAP_SYS_RESOURCE, which root in a container seldom has. This module calls the kernel directly,
because the C library's functions change every thread of the process. The effective ids do not
change, so the thread neither loses nor gains rights, and the process stays dumpable.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

from sandbox.account import Account
from sandbox.linux.seccomp import host_architecture

_SETRESUID = {"x86_64": 117, "aarch64": 147}
_SETRESGID = {"x86_64": 119, "aarch64": 149}
_UNCHANGED = 0xFFFFFFFF

_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def real_ids_of(account: Account) -> Iterator[None]:
    """Give the calling thread the real uid and gid of `account` in the block.

    Raises OSError if this process lacks the permission.
    """
    own = Account(os.getuid(), os.getgid())
    if own == account:
        yield
        return
    machine = host_architecture().name
    try:
        _set_real_id(_SETRESGID[machine], account.gid)
        _set_real_id(_SETRESUID[machine], account.uid)
        yield
    finally:
        _set_real_id(_SETRESUID[machine], own.uid)
        _set_real_id(_SETRESGID[machine], own.gid)


def _set_real_id(call: int, real: int) -> None:
    numbers = (ctypes.c_uint(real), ctypes.c_uint(_UNCHANGED), ctypes.c_uint(_UNCHANGED))
    if _libc.syscall(ctypes.c_long(call), *numbers) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
