"""The system-call filter of a sandbox, as the classic BPF program that bubblewrap loads.

Refused calls fail with an errno, so that programs use their fallbacks. A call for another
architecture or the x32 table, where the same numbers mean other calls, kills the process. Flags are
compared only in their low 32 bits: the kernel ignores the upper half of an `int`, so the filter
must ignore it too.
"""

from __future__ import annotations

import errno
import platform
import socket
import struct
from dataclasses import dataclass
from functools import cache

from sandbox.errors import SandboxUnavailable
from sandbox.linux.syscall_table import NEWEST_KNOWN, NUMBERS, REFUSALS

_LOAD, _JUMP, _JUMP_EQUAL, _JUMP_GREATER, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _AND, _RETURN = (
    0x20,  # BPF_LD | BPF_W | BPF_ABS
    0x05,  # BPF_JMP | BPF_JA
    0x15,  # BPF_JMP | BPF_JEQ | BPF_K
    0x25,  # BPF_JMP | BPF_JGT | BPF_K
    0x35,  # BPF_JMP | BPF_JGE | BPF_K
    0x45,  # BPF_JMP | BPF_JSET | BPF_K
    0x54,  # BPF_ALU | BPF_AND | BPF_K
    0x06,  # BPF_RET | BPF_K
)
_ALLOW = 0x7FFF0000
_KILL_PROCESS = 0x80000000
_ERRNO = 0x00050000

_NR_OFFSET = 0
_ARCH_OFFSET = 4
_X32_BIT = 0x40000000

_CLONE_NEW_ANY = 0x7E020000  # NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_TIOCSTI, _TIOCLINUX, _TIOCSETD = 0x5412, 0x541C, 0x5423
_F_NOTIFY = 1026
_SET_ID_BITS = 0o6000
_O_CREAT_OR_TMPFILE = 0o100 | 0o20000000
_SOCK_TYPE_MASK = 0xF
_INTERNET_PROTOCOLS = (0, 1, 6, 17, 58)  # default, ICMP, TCP, UDP, ICMPv6


@dataclass(frozen=True, slots=True)
class Architecture:
    """A processor architecture: its `column` in the table of numbers, and its AUDIT_ARCH value."""

    name: str
    column: int
    audit: int


ARCHITECTURES = {
    "x86_64": Architecture("x86_64", 0, 0xC000003E),
    "aarch64": Architecture("aarch64", 1, 0xC00000B7),
}


def _instruction(code: int, k: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, k)


def _load_argument(index: int) -> bytes:
    # Both architectures are little-endian: the low half comes first.
    return _instruction(_LOAD, 16 + 8 * index)


def _refuse(error: int) -> bytes:
    return _instruction(_RETURN, _ERRNO | error)


_SIZE = len(_instruction(_RETURN, 0))


def _length(block: bytes) -> int:
    return len(block) // _SIZE


def _when_number_in(numbers: list[int], block: bytes) -> bytes:
    """Return filter code that executes `block` if the accumulator is one of `numbers`.

    `block` must end with a return.
    """
    tests = [
        _instruction(_JUMP_EQUAL, number, if_true=len(numbers) - place)
        for place, number in enumerate(numbers)
    ]
    return b"".join(tests) + _instruction(_JUMP, _length(block)) + block


def _when_number_is(number: int, block: bytes) -> bytes:
    return _instruction(_JUMP_EQUAL, number, if_false=_length(block)) + block


def _refuse_if_any_bit(bits: int, error: int) -> bytes:
    return _instruction(_JUMP_ANY_BIT, bits, if_false=1) + _refuse(error)


def _refuse_if_in(values: tuple[int, ...], error: int) -> bytes:
    return _when_number_in(list(values), _refuse(error))


def _refuse_unless_in(values: tuple[int, ...], error: int) -> bytes:
    tests = [
        _instruction(_JUMP_EQUAL, value, if_true=len(values) - place)
        for place, value in enumerate(values)
    ]
    return b"".join(tests) + _refuse(error)


_ALLOWED = _instruction(_RETURN, _ALLOW)


def _socket_rules(*, named: bool) -> bytes:
    """Return filter code that allows sockets: INET, INET6, and UNIX if `named`.

    Only streams and datagrams are allowed, no raw sockets, and no protocol that loads a module.
    """
    families = (*((socket.AF_UNIX,) if named else ()), socket.AF_INET, socket.AF_INET6)
    internet = (
        _load_argument(1)
        + _instruction(_AND, _SOCK_TYPE_MASK)
        + _refuse_unless_in((socket.SOCK_STREAM, socket.SOCK_DGRAM), errno.EPERM)
        + _load_argument(2)
        + _refuse_unless_in(_INTERNET_PROTOCOLS, errno.EPROTONOSUPPORT)
        + _ALLOWED
    )
    return (
        _load_argument(0)
        + _refuse_unless_in(tuple(int(family) for family in families), errno.EAFNOSUPPORT)
        + _instruction(_JUMP_EQUAL, int(socket.AF_UNIX), if_true=_length(internet))
        + internet
        # SOCK_RAW on AF_UNIX is a harmless alias: the kernel creates a datagram socket.
        + _ALLOWED
    )


def _connected_pair_rules() -> bytes:
    """Return filter code that allows only connected pairs of UNIX sockets.

    Such a socket can never be connected to another socket. Datagram pairs are refused, because
    their sockets can still send to any path.
    """
    kinds = (socket.SOCK_STREAM, socket.SOCK_SEQPACKET)
    return (
        _load_argument(0)
        + _refuse_unless_in((int(socket.AF_UNIX),), errno.EAFNOSUPPORT)
        + _load_argument(1)
        + _instruction(_AND, _SOCK_TYPE_MASK)
        + _refuse_unless_in(kinds, errno.EPERM)
        + _ALLOWED
    )


def _mode_rules(mode_argument: int) -> bytes:
    return _load_argument(mode_argument) + _refuse_if_any_bit(_SET_ID_BITS, errno.EPERM) + _ALLOWED


def _open_rules(flags_argument: int) -> bytes:
    """Return filter code that checks the mode of files that an open call creates.

    The mode is checked only with O_CREAT, because the argument is undefined otherwise.
    """
    mode = _load_argument(flags_argument + 1) + _refuse_if_any_bit(_SET_ID_BITS, errno.EPERM)
    return (
        _load_argument(flags_argument)
        + _instruction(_JUMP_ANY_BIT, _O_CREAT_OR_TMPFILE, if_false=_length(mode))
        + mode
        + _ALLOWED
    )


def _argument_rules(unix_sockets: bool) -> dict[str, bytes]:
    pair = _socket_rules(named=True) if unix_sockets else _connected_pair_rules()
    terminal = (_TIOCSTI, _TIOCLINUX, _TIOCSETD)
    return {
        "clone": _load_argument(0) + _refuse_if_any_bit(_CLONE_NEW_ANY, errno.EPERM) + _ALLOWED,
        "socket": _socket_rules(named=unix_sockets),
        "socketpair": pair,
        "ioctl": _load_argument(1) + _refuse_if_in(terminal, errno.EPERM) + _ALLOWED,
        # The older form of inotify. A kernel without inotify returns EINVAL.
        "fcntl": _load_argument(1) + _refuse_if_in((_F_NOTIFY,), errno.EINVAL) + _ALLOWED,
        # A set-id file in a workspace would outlive the sandbox, and other users could run it.
        "chmod": _mode_rules(1),
        "fchmod": _mode_rules(1),
        "fchmodat": _mode_rules(2),
        "fchmodat2": _mode_rules(2),
        "creat": _mode_rules(1),
        "mknod": _mode_rules(1),
        "mknodat": _mode_rules(2),
        "open": _open_rules(1),
        "openat": _open_rules(2),
    }


def host_architecture() -> Architecture:
    """Return this machine's entry. Raises `SandboxUnavailable` if there is no table for it."""
    machine = platform.machine()
    try:
        return ARCHITECTURES[machine]
    except KeyError:
        raise SandboxUnavailable(
            f"There is no system-call filter for {machine!r}; "
            f"sandboxes run on {', '.join(ARCHITECTURES)}."
        ) from None


@cache
def filter_program(architecture: Architecture, *, unix_sockets: bool = False) -> bytes:
    """Return the filter as an array of `struct sock_filter`, which `bwrap --seccomp` reads.

    Without `unix_sockets`, a UNIX socket can only be half of a connected pair. A filter sees no
    path, so it cannot distinguish a socket of the sandbox from a socket of a host program.
    """

    def numbers(calls: tuple[str, ...]) -> list[int]:
        column = (NUMBERS[call][architecture.column] for call in calls)
        return [number for number in column if number is not None]

    parts = [
        _instruction(_LOAD, _ARCH_OFFSET),
        _instruction(_JUMP_EQUAL, architecture.audit, if_true=1),
        _instruction(_RETURN, _KILL_PROCESS),
        _instruction(_LOAD, _NR_OFFSET),
        _instruction(_JUMP_AT_LEAST, _X32_BIT, if_false=1),
        _instruction(_RETURN, _KILL_PROCESS),
        _instruction(_JUMP_GREATER, NEWEST_KNOWN, if_false=1),
        _refuse(errno.ENOSYS),
    ]
    parts += [
        _when_number_in(numbers(refusal.calls), _refuse(refusal.errno))
        for refusal in REFUSALS
        if numbers(refusal.calls)
    ]
    parts += [
        _when_number_is(number, block)
        for call, block in _argument_rules(unix_sockets).items()
        for number in numbers((call,))
    ]
    parts.append(_ALLOWED)
    return b"".join(parts)
