"""The system-call filter, as a program for both architectures and in the kernel."""

import errno
import platform
import re
import socket
import struct
from pathlib import Path

import pytest

from sandbox.errors import SandboxUnavailable
from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.linux.seccomp import ARCHITECTURES, Architecture, filter_program, host_architecture
from sandbox.linux.syscall_table import NEWEST_KNOWN, NUMBERS, REFUSALS

ALLOW = "allow"
KILL = "kill"

both = pytest.mark.parametrize("architecture", ARCHITECTURES.values(), ids=list(ARCHITECTURES))


def verdict(
    architecture: Architecture,
    number: int,
    *arguments: int,
    audit: int | None = None,
    unix_sockets: bool = False,
) -> str | int:
    """Interpret the filter like the kernel. Return its verdict: ALLOW, KILL or an errno."""
    values = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number, audit or architecture.audit, 0, *values)
    code = filter_program(architecture, unix_sockets=unix_sockets)
    program = list(struct.iter_unpack("<HBBI", code))
    accumulator, at = 0, 0
    while True:
        code, if_true, if_false, k = program[at]
        at += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, k)
        elif code == 0x54:
            accumulator &= k
        elif code == 0x05:
            at += k
        elif code == 0x06:
            return {0x7FFF0000: ALLOW, 0x80000000: KILL}.get(k, k & 0xFFFF)
        else:
            taken = {
                0x15: accumulator == k,
                0x25: accumulator > k,
                0x35: accumulator >= k,
                0x45: bool(accumulator & k),
            }[code]
            at += if_true if taken else if_false


def number_of(architecture: Architecture, call: str) -> int | None:
    return NUMBERS[call][architecture.column]


@both
def test_every_refused_call_gets_its_errno(architecture: Architecture) -> None:
    for refusal in REFUSALS:
        for call in refusal.calls:
            number = number_of(architecture, call)
            if number is not None:
                assert verdict(architecture, number) == refusal.errno, call


@both
def test_everything_else_up_to_the_newest_known_is_allowed(architecture: Architecture) -> None:
    refused = {number_of(architecture, call) for refusal in REFUSALS for call in refusal.calls}
    by_argument = {number_of(architecture, "socket"), number_of(architecture, "socketpair")}
    for number in set(range(NEWEST_KNOWN + 1)) - refused - by_argument:
        assert verdict(architecture, number) == ALLOW, number
    for number in (NEWEST_KNOWN + 1, 1000, 0x3FFFFFFF):
        assert verdict(architecture, number) == errno.ENOSYS


@both
def test_calls_of_another_table_kill_the_process(architecture: Architecture) -> None:
    for audit in (0x40000003, 0x40000028, 0xC000003E, 0xC00000B7):  # i386, arm, and the two
        if audit != architecture.audit:
            assert verdict(architecture, 1, audit=audit) == KILL
    assert verdict(architecture, 0x40000000 | 39) == KILL
    assert verdict(architecture, 0xFFFFFFFF) == KILL


@both
def test_clone_makes_threads_and_processes_but_no_namespace(architecture: Architecture) -> None:
    clone = number_of(architecture, "clone")
    assert clone is not None
    for flags in (17, 0x3D0F00, 0x1200011, 0x4111):  # fork, thread, glibc's fork, vfork
        assert verdict(architecture, clone, flags) == ALLOW
    for bit in (17, 25, 26, 27, 28, 29, 30):
        assert verdict(architecture, clone, 1 << bit | 17) == errno.EPERM
        assert verdict(architecture, clone, 1 << bit | 1 << 40) == errno.EPERM


@both
@pytest.mark.parametrize("call", ["socket", "socketpair"])
def test_sockets_are_unix_or_plain_internet(architecture: Architecture, call: str) -> None:
    number = number_of(architecture, call)
    assert number is not None

    def asked(family: int, kind: int, protocol: int = 0) -> str | int:
        arguments = (family, kind, protocol)
        return verdict(architecture, number or 0, *arguments, unix_sockets=True)

    options = socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
    for family in (socket.AF_INET, socket.AF_INET6):
        assert asked(family, socket.SOCK_STREAM | options, 6) == ALLOW
        assert asked(family, socket.SOCK_DGRAM | options, 17) == ALLOW
        for kind in (socket.SOCK_RAW, socket.SOCK_SEQPACKET, socket.SOCK_RDM, 6, 10):
            assert asked(family, kind | options) == errno.EPERM
        for protocol in (33, 132, 136, 255, 262):
            assert asked(family, socket.SOCK_STREAM, protocol) == errno.EPROTONOSUPPORT
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        assert asked(socket.AF_UNIX, kind | options) == ALLOW
    for family in set(range(50)) - {1, 2, 10}:
        assert asked(family, socket.SOCK_DGRAM) == errno.EAFNOSUPPORT
    # The kernel reads 32 bits: higher bits cannot bypass the filter.
    assert asked(1 << 32 | socket.AF_NETLINK, socket.SOCK_DGRAM) == errno.EAFNOSUPPORT
    assert asked(socket.AF_INET, 1 << 32 | socket.SOCK_RAW) == errno.EPERM


@both
def test_without_unix_sockets_only_connected_pairs_are_made(architecture: Architecture) -> None:
    numbers = {name: number_of(architecture, name) or 0 for name in ("socket", "socketpair")}

    def asked(call: str, family: int, kind: int) -> str | int:
        return verdict(architecture, numbers[call], family, kind)

    for options in (0, socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK, 1 << 32):
        for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
            assert asked("socketpair", socket.AF_UNIX, kind | options) == ALLOW
        # A datagram socket of a pair can send to any path.
        for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW, 0):
            assert asked("socketpair", socket.AF_UNIX, kind | options) == errno.EPERM
        for kind in range(11):
            assert asked("socket", socket.AF_UNIX | options & 1 << 32, kind) == errno.EAFNOSUPPORT
    for family in (socket.AF_INET, socket.AF_INET6):
        assert asked("socket", family, socket.SOCK_STREAM) == ALLOW
        assert asked("socket", family, socket.SOCK_DGRAM) == ALLOW
        assert asked("socketpair", family, socket.SOCK_STREAM) == errno.EAFNOSUPPORT


@both
def test_events_of_directories_are_refused(architecture: Architecture) -> None:
    fcntl = number_of(architecture, "fcntl")
    assert fcntl is not None
    for command in (1026, 1026 | 1 << 32):  # F_NOTIFY
        assert verdict(architecture, fcntl, 3, command) == errno.EINVAL
    for command in (0, 2, 4, 6, 1024, 1030, 1031, 1033):
        assert verdict(architecture, fcntl, 3, command) == ALLOW


@both
def test_terminal_injection_is_refused_on_the_low_half(architecture: Architecture) -> None:
    ioctl = number_of(architecture, "ioctl")
    assert ioctl is not None
    for request in (0x5412, 0x541C, 0x5423):
        assert verdict(architecture, ioctl, 0, request) == errno.EPERM
        assert verdict(architecture, ioctl, 0, request | 1 << 32) == errno.EPERM
    for request in (0x5401, 0x5413, 0x541B, 0x5421):  # TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO
        assert verdict(architecture, ioctl, 0, request) == ALLOW


@both
def test_set_id_bits_are_refused_in_a_mode(architecture: Architecture) -> None:
    places = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1, "mknod": 1}
    for call, place in {**places, "mknodat": 2}.items():
        number = number_of(architecture, call)
        if number is None:
            continue
        for mode in (0o4755, 0o2755, 0o6000):
            assert verdict(architecture, number, *[0] * place, mode) == errno.EPERM, call
        assert verdict(architecture, number, *[0] * place, 0o1777) == ALLOW
    for call, place in {"open": 1, "openat": 2}.items():
        number = number_of(architecture, call)
        if number is None:
            continue
        assert verdict(architecture, number, *[0] * place, 0o100, 0o4755) == errno.EPERM
        assert verdict(architecture, number, *[0] * place, 0o20200000, 0o4755) == errno.EPERM
        assert verdict(architecture, number, *[0] * place, 0o100, 0o644) == ALLOW
        assert verdict(architecture, number, *[0] * place, 0, 0o4755) == ALLOW  # garbage


def test_the_numbers_are_the_kernels() -> None:
    headers = list(Path("/usr/include").glob("*/asm/unistd_64.h"))
    if platform.machine() != "x86_64" or not headers:
        pytest.skip("needs the x86_64 kernel headers: apt-get install linux-libc-dev")
    found = dict(re.findall(r"#define __NR_(\w+) (\d+)", headers[0].read_text()))
    for call, (number, _) in NUMBERS.items():
        if number is not None and call in found:
            assert number == int(found[call]), call
    generic = Path("/usr/include/asm-generic/unistd.h").read_text()
    found = dict(re.findall(r"#define __NR(?:3264)?_(\w+) (\d+)", generic))
    for call, (_, number) in NUMBERS.items():
        if number is not None and call in found:
            assert number == int(found[call]), call


def test_a_machine_without_a_table_has_no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(SandboxUnavailable, match="riscv64"):
        host_architecture()


RAW_CALLS = """
import ctypes, errno, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    result = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
    return "ok" if result >= 0 else errno.errorcode[ctypes.get_errno()]
"""


@pytest.mark.bubblewrap
def test_the_kernel_refuses_them_inside(box: BubblewrapSandbox) -> None:
    architecture = host_architecture()
    calls = [call for refusal in REFUSALS for call in refusal.calls]
    numbers = {call: number_of(architecture, call) for call in calls}
    present = {call: number for call, number in numbers.items() if number is not None}
    source = f"{RAW_CALLS}\nfor name, n in {present!r}.items(): print(name, call(n, 0, 0, 0, 0))"
    result = box.execute_python(source)
    answers = dict(line.split() for line in result.stdout.splitlines())
    for refusal in REFUSALS:
        for call in refusal.calls:
            if call in present:
                assert answers[call] == errno.errorcode[refusal.errno], call


@pytest.mark.bubblewrap
def test_the_kernel_checks_arguments_inside(box: BubblewrapSandbox) -> None:
    result = box.execute_python(
        RAW_CALLS
        + """
import fcntl, os, pty, socket, termios
def tried(name, attempt):
    try:
        attempt(); print(name, "ok")
    except OSError as error:
        print(name, errno.errorcode[error.errno])
master, slave = pty.openpty()
tried("tiocsti", lambda: fcntl.ioctl(slave, termios.TIOCSTI, b"x"))
print("tiocsti-high", call(NR_IOCTL, slave, 0x5412 | 1 << 32, 0))
tried("winsize", lambda: termios.tcgetwinsize(slave))
for family in ("NETLINK", "PACKET", "VSOCK", "ALG"):
    tried(family, lambda: socket.socket(getattr(socket, "AF_" + family), socket.SOCK_DGRAM))
tried("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
tried("sctp", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132))
tried("udp", lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM))
print("newuser", call(NR_CLONE, 0x10000000 | 17, 0, 0, 0, 0))
print("future", call(9999))
""".replace("NR_IOCTL", str(number_of(host_architecture(), "ioctl"))).replace(
            "NR_CLONE", str(number_of(host_architecture(), "clone"))
        )
    )
    assert dict(line.split() for line in result.stdout.splitlines()) == {
        "tiocsti": "EPERM",
        "tiocsti-high": "EPERM",
        "winsize": "ok",
        "NETLINK": "EAFNOSUPPORT",
        "PACKET": "EAFNOSUPPORT",
        "VSOCK": "EAFNOSUPPORT",
        "ALG": "EAFNOSUPPORT",
        "raw": "EPERM",
        "sctp": "EPROTONOSUPPORT",
        "udp": "ok",
        "newuser": "EPERM",
        "future": "ENOSYS",
    }, result.stderr


@pytest.mark.bubblewrap
@pytest.mark.skipif(platform.machine() != "x86_64", reason="needs an x86_64 processor")
@pytest.mark.parametrize(
    "attempt",
    [
        "call(0x40000000 | 39)",  # getpid of the x32 table
        # mov eax, 20; int 0x80; ret: getpid of the i386 table
        "(lambda m: (m.write(bytes.fromhex('b814000000cd80c3')), "
        "ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()))"
        "(__import__('mmap').mmap(-1, 4096, prot=7))",
    ],
)
def test_a_call_through_a_foreign_table_kills(box: BubblewrapSandbox, attempt: str) -> None:
    result = box.execute_python(f"{RAW_CALLS}\nprint('before'); {attempt}; print('after')")
    assert result.stdout == "before\n"
    assert result.exit_code == 128 + 31  # SIGSYS
