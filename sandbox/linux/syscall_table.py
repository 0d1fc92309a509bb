"""The system calls that a sandbox refuses, and their numbers.

Numbers are (x86_64, aarch64), with None if an architecture has no such call. They come from the
kernel's `unistd` headers and never change once assigned.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass

NEWEST_KNOWN = 466
"""Higher numbers are newer than this table: they get ENOSYS, as from an old kernel."""

NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "_sysctl": (156, None),
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chmod": (90, None),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "creat": (85, None),
    "create_module": (174, None),
    "delete_module": (176, 106),
    "fallocate": (285, 47),
    "fanotify_init": (300, 262),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "fcntl": (72, 25),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "get_kernel_syms": (177, None),
    "init_module": (175, 105),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "memfd_secret": (447, 447),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "name_to_handle_at": (303, 264),
    "nfsservctl": (180, 42),
    "open": (2, None),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "openat": (257, 56),
    "openat2": (437, 437),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "query_module": (178, None),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "sysfs": (139, None),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "uselib": (134, None),
    "userfaultfd": (323, 282),
    "ustat": (136, None),
    "vhangup": (153, 58),
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Calls that always fail with the same errno, for all arguments."""

    reason: str
    errno: int
    calls: tuple[str, ...]


REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "programs that know these calls fall back to older ones when the kernel lacks them; "
        "clone3 and openat2 take their flags by pointer, which a filter cannot read",
        errno.ENOSYS,
        (
            "clone3",
            "io_uring_setup",
            "io_uring_enter",
            "io_uring_register",
            "memfd_secret",
            "openat2",
        ),
    ),
    Refusal(
        "reserves blocks past every watchdog; programs then write the bytes instead",
        errno.EOPNOTSUPP,
        ("fallocate",),
    ),
    Refusal(
        "system files belong to the host: their events show which programs the host "
        "starts; programs that watch files poll instead",
        errno.ENOSYS,
        ("inotify_init", "inotify_init1"),
    ),
    Refusal(
        "looks into other processes",
        errno.EPERM,
        ("ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd"),
    ),
    Refusal(
        "keyrings are not part of any namespace",
        errno.EPERM,
        ("add_key", "request_key", "keyctl"),
    ),
    Refusal(
        "large kernel surfaces that no sandboxed program needs",
        errno.EPERM,
        ("bpf", "perf_event_open", "userfaultfd", "lookup_dcookie", "fanotify_init"),
    ),
    Refusal(
        "changes the sandbox's own view",
        errno.EPERM,
        (
            "mount",
            "umount2",
            "open_tree",
            "move_mount",
            "fsopen",
            "fsconfig",
            "fsmount",
            "fspick",
            "mount_setattr",
            "chroot",
            "pivot_root",
            "unshare",
            "setns",
            "open_by_handle_at",
            "name_to_handle_at",
        ),
    ),
    Refusal(
        "changes the machine",
        errno.EPERM,
        (
            "kexec_load",
            "kexec_file_load",
            "init_module",
            "finit_module",
            "delete_module",
            "create_module",
            "query_module",
            "get_kernel_syms",
            "reboot",
            "swapon",
            "swapoff",
            "quotactl",
            "quotactl_fd",
            "syslog",
            "acct",
            "settimeofday",
            "clock_settime",
            "clock_adjtime",
            "adjtimex",
            "sethostname",
            "setdomainname",
            "vhangup",
            "nfsservctl",
            "_sysctl",
            "sysfs",
            "ustat",
            "uselib",
        ),
    ),
    Refusal(
        "x86 tables and ports",
        errno.EPERM,
        ("iopl", "ioperm", "modify_ldt"),
    ),
)
