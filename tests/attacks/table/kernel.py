# ruff: noqa: E501 - a row of the table is read as one
"""Privileges, and system calls with a large attack surface in the kernel."""

from tests.attacks.attack import Attack, Without


def _rights(name: str, source: str, without: Without = "bare") -> Attack:
    return Attack(name, "privileges and set-uid", source, "printed", without)


def _set_id(name: str, make: str) -> Attack:
    return _rights(
        name,
        "import shutil\nshutil.copy('/usr/bin/id', slug)\n"
        + make
        + "\nprint('SUCCESS' if os.stat(slug).st_mode & 0o6000 else '')",
    )


def _call(name: str, source: str, without: Without = "bare") -> Attack:
    return Attack(name, "kernel surface", source + "\nprint('SUCCESS')", "printed", without)


# For kernels without it, or if an operator has disabled it.
def _optional(source: str) -> str:
    return (
        f"try: {source}\n"
        "except OSError as e:\n"
        "    raise SystemExit(f'ABSENT: {e}' if e.errno == 38 else e)"
    )


ATTACKS = (
    _set_id("set-uid by install", "sh(f'install -m 4755 /usr/bin/id {slug}')"),
    _set_id("set-uid by symbolic chmod", "sh(f'chmod u+s {slug}')"),
    _set_id("set-gid by chmod", "sh(f'chmod 2755 {slug}')"),
    _set_id("set-uid by rsync's way: temporary file, fchmod, rename",
            "f = os.open(slug + 't', os.O_CREAT | os.O_RDWR, 0o600)\n"
            "os.fchmod(f, 0o4755); os.rename(slug + 't', slug)"),
    _set_id("set-gid directory", "os.unlink(slug); sh(f'mkdir {slug}; chmod g+s {slug}')"),
    _set_id("set-uid by the newest chmod", "call(452, 452, -100, slug.encode(), 0o4755, 0)"),
    _rights("set-uid programs count", "print('' if LIBC.prctl(39, 0, 0, 0, 0) else 'SUCCESS')"),
    _rights("capabilities left in the bounding set",
            "print('SUCCESS' if any(LIBC.prctl(23, n, 0, 0, 0) == 1 for n in range(41)) else '')"),
    _rights("root of a new user namespace", "sh('unshare -Ur id -u | grep -qx 0 && echo SUCCESS')"),
    _rights("root by clone", "call(56, 220, 0x10000000 | 17, 0, 0, 0, 0); print('SUCCESS')"),
    _rights("root by clone3",
            "a = (ctypes.c_uint64 * 8)(0x10000000, 0, 0, 0, 17)\n"
            "call(435, 435, a, 64); print('SUCCESS')"),
    _rights("mount by unshare",
            "sh('mkdir -p mnt; unshare -Urm mount -t tmpfs x mnt && echo SUCCESS')"),
    _rights("a sandbox without a filter, inside",
            "sh('bwrap --unshare-user --bind / / true && echo SUCCESS')"),
    _rights("change to root", "os.setresuid(0, 0, 0); print('SUCCESS')", "bwrap"),
    _rights("mount", "os.mkdir(slug)\n"
            "print('' if LIBC.mount(b'x', slug.encode(), b'tmpfs', 0, None) else 'SUCCESS')",
            "bwrap"),
    _rights("unmount what hides", "print('' if LIBC.umount2(b'/dev/shm', 2) and "
            "LIBC.umount2(b'/proc', 2) else 'SUCCESS')", "bwrap"),
    _rights("write to the system again", "print('' if LIBC.mount(None, b'/', None, 0x20 | 0x1000, "
            "None) else 'SUCCESS')", "bwrap"),
    _rights("another host name", "print('' if LIBC.sethostname(b'x', 1) else 'SUCCESS')", "bwrap"),
    _rights("file capabilities", "import shutil; shutil.copy('/usr/bin/id', slug)\n"
            "os.setxattr(slug, 'security.capability', struct.pack('<IIIII', 0x2000001, 255, 0, 0, 0))"
            "; print('SUCCESS')", "bwrap"),
    _rights("restart, with a wrong number so that nothing happens",
            "try: call(169, 142, 1, 2, 3, 0)\n"
            "except OSError as e: print('SUCCESS' if e.errno == 22 else e)", "bwrap"),
    _call("io_uring", _optional("call(425, 425, 4, (ctypes.c_uint8 * 120)())")),
    _call("userfaultfd", _optional("call(323, 282, 1)")),
    _call("keyrings", _optional("call(248, 217, b'user', b'vel', b'x', 1, -1)")),
    _call("the session's keyring", _optional("call(250, 219, 0, -3, 1)")),
    _call("performance counters",
          _optional("call(298, 241, (ctypes.c_uint32 * 32)(1, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0x60), "
                    "0, -1, -1, 0)")),
    _call("file handles", _optional("call(303, 264, -100, b'.', (ctypes.c_uint32 * 40)(128), "
                                    "(ctypes.c_int * 1)(), 0)")),
    _call("comparing processes", _optional("call(312, 272, os.getpid(), os.getpid(), 0, 0, 0)")),
    _call("which programs the host starts, by inotify",
          "f = call(294, 26, 0); call(254, 27, f, b'/usr/bin', 0x21)"),
    _call("which programs the host starts, by dnotify",
          "import signal; signal.signal(signal.SIGIO, signal.SIG_IGN)\n"
          "try: fcntl.fcntl(os.open('/usr/bin', 0), 1026, 1)\n"
          "except OSError as e:\n"
          "    raise SystemExit('ABSENT: no dnotify' if e.errno == 22 else e)"),
    _call("watching whole file systems", _optional("call(300, 262, 0x200, 0)")),
    _call("secret memory", _optional("call(447, 447, 0)")),
    _call("the descriptor table of x86", "call(154, None, 0, (ctypes.c_uint8 * 64)(), 64)"),
    _call("reserving blocks past every count",
          "f = os.open(slug, os.O_CREAT | os.O_RDWR); call(285, 47, f, 0, 0, 1 << 20)"),
    _call("a namespace by setns", "call(308, 268, os.open('/proc/self/ns/uts', 0), 0)", "bwrap"),
    _call("a new file system context", "call(430, 430, b'tmpfs', 0)", "bwrap"),
    _call("pivot_root", "try: call(155, 41, b'.', b'.')\n"
          "except OSError as e:\n"
          "    if e.errno == 1: raise", "bwrap"),
    _call("tracing a child",
          "p = os.fork()\n"
          "if p == 0: time.sleep(2); os._exit(0)\n"
          "LIBC.ptrace.argtypes = [ctypes.c_long] * 4\n"
          "failed = LIBC.ptrace(0x4206, p, 0, 0); os.kill(p, 9)\n"
          "if failed: raise OSError('ptrace')"),
)  # fmt: skip
