"""The Seatbelt profile of a policy, in Apple's sandbox profile language.

Without a matching rule, access is denied; of several matching rules, the last one decides. The
caller's paths are never part of the text. They are parameters (`-D NAME=value`), so no character in
a file name can become a rule. Undocumented parts were taken from profiles in production: those of
Chromium, Codex and Anthropic's sandbox runtime.

The module also decides which paths of a policy macOS can show, and which paths it must not show.
macOS has no mount namespaces: commands see the host's own tree, and Seatbelt compares resolved
paths (/tmp is /private/tmp).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox.errors import SandboxSetupError
from sandbox.policy import Mount, SandboxPolicy

_SYSTEM = (
    *("/System", "/Library", "/Applications", "/usr", "/bin", "/sbin", "/dev", "/cores"),
    *("/private/etc", "/private/var/db", "/private/var/run", "/private/var/root"),
    *("/private/var/select", "/opt/homebrew", "/Network"),
)
"""Never shown, including their contents and their parents. Programs are readable without it."""

_SHARED = frozenset({"/private/tmp", "/private/var/tmp", "/private/var/folders", "/Volumes"})
"""Not shown as a whole; a directory in them can be."""

_SECRET_NAMES = frozenset(
    {".ssh", ".gnupg", ".aws", ".kube", ".docker", ".netrc", ".config", "Keychains"}
)


@dataclass(frozen=True, slots=True)
class ShownPath:
    """A resolved path that commands can read, and whether they can also write below it."""

    path: Path
    writable: bool


def shown_paths(policy: SandboxPolicy, home: Path) -> list[ShownPath]:
    """Return the mounts of `policy`, in their order, as resolved paths.

    Raises `SandboxSetupError` for a mount with a different target path, for a mount that overlaps
    with private files of the Mac or its users, and if no mount contains the working directory.
    """
    shown = [_shown(mount, home.resolve()) for mount in policy.mounts]
    start = Path(policy.working_dir).resolve()
    if not any(start.is_relative_to(each.path) for each in shown):
        raise SandboxSetupError(
            f"No mount of the policy contains the working directory {policy.working_dir}. Mount it."
        )
    return shown


def _shown(mount: Mount, home: Path) -> ShownPath:
    try:
        path = mount.source.resolve(strict=True)
    except OSError as error:
        raise SandboxSetupError(
            f"The mount {mount.source} cannot be read: {error.strerror}."
        ) from error
    if mount.target not in (str(mount.source), str(path)):
        raise SandboxSetupError(
            f"{mount.source} cannot be shown at {mount.target}: on macOS commands see every "
            "directory only at its own path. Use a sandbox for a directory (create_sandbox), or "
            "Linux."
        )
    if not (path.is_dir() or path.is_file()):
        raise SandboxSetupError(
            f"The mount {path} is a socket, a pipe or a device, through which commands would "
            "reach the host. Mount files and directories only."
        )
    if _exposes_the_machine(path) or _exposes_an_account(path, home):
        raise SandboxSetupError(
            f"The mount {mount.source} (resolved: {path}) contains private files or programs of "
            "this Mac or its users. Use a separate directory."
        )
    return ShownPath(path, mount.writable)


def _exposes_the_machine(path: Path) -> bool:
    return str(path) in _SHARED or any(
        path.is_relative_to(tree) or Path(tree).is_relative_to(path) for tree in _SYSTEM
    )


def _exposes_an_account(path: Path, home: Path) -> bool:
    users = Path("/Users")
    return (
        path in (users, home)
        or path.parent == users
        or home.is_relative_to(path)
        or path.is_relative_to(home / "Library")
        or not _SECRET_NAMES.isdisjoint(path.parts)
    )


PROGRAMS = (
    *("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/libexec", "/usr/lib", "/usr/share"),
    *("/System/Library", "/System/Cryptexes", "/System/Volumes/Preboot/Cryptexes"),
    *("/Library/Apple", "/Library/Frameworks", "/Library/Developer/CommandLineTools"),
    "/Applications/Xcode.app/Contents/Developer",
    # Not all directories: a package manager's etc and var contain settings and databases.
    *(f"/usr/local/{name}" for name in ("bin", "lib", "share", "opt", "Cellar", "Frameworks")),
    *(f"/opt/homebrew/{name}" for name in ("bin", "lib", "share", "opt", "Cellar", "Frameworks")),
)
"""Trees of the system that commands may read and run."""

_SETTINGS = (
    *("hosts", "localtime", "passwd", "group", "protocols", "services", "shells", "profile"),
    *("bashrc", "resolv.conf"),
)
_SETTING_TREES = (
    *("/private/etc/ssl", "/private/var/db/timezone", "/private/var/select"),
    *("/private/var/db/dyld", "/private/var/db/xcode_select_link"),
)
_LINKS = ("/etc", "/tmp", "/var")  # noqa: S108 - names in a profile
"""Links into /private. Permission to read a link gives no access to its target."""

_SYSCTLS = (
    *("hw.activecpu", "hw.byteorder", "hw.cpufamily", "hw.cputype", "hw.logicalcpu"),
    *("hw.logicalcpu_max", "hw.machine", "hw.memsize", "hw.ncpu", "hw.packages", "hw.pagesize"),
    *("hw.pagesize_compat", "hw.physicalcpu", "hw.physicalcpu_max", "hw.tbfrequency_compat"),
    *("kern.argmax", "kern.hostname", "kern.maxfilesperproc", "kern.ngroups", "kern.osrelease"),
    *("kern.osproductversion", "kern.ostype", "kern.osvariant_status", "kern.osversion"),
    *("kern.secure_kernel", "kern.usrstack64", "kern.version", "sysctl.proc_cputype"),
    *("machdep.cpu.brand_string", "vm.loadavg"),
)
"""Properties of the machine. Excludes kern.proc*, which exposes the arguments and environments of
other processes."""

_SYSCTL_PREFIXES = ("hw.optional.", "hw.perflevel")

_MACH_SERVICES = ("com.apple.system.opendirectoryd.libinfo",)
"""Account names. Excludes keychain, pasteboard, launch services, Apple events and preferences: each
of them would act for a command outside the sandbox."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile. Its `text` refers to `parameters`, which are pairs of name and absolute path."""

    text: str
    parameters: tuple[tuple[str, str], ...]


def render_profile(
    shown: Sequence[ShownPath],
    temporary: Path,
    egress_socket: Path | None = None,
    protected: Sequence[Path] = (),
) -> Profile:
    """Return the profile for the paths `shown` in the order of the policy's mounts.

    All paths are resolved.

    Args:
        temporary: The command's own temporary directory.
        egress_socket: The only UNIX socket that commands may connect to; None for no socket.
        protected: Paths in writable mounts that commands must neither create nor change.
    """
    parameters = [(f"SHOWN_{number}", str(each.path)) for number, each in enumerate(shown)]
    parameters.append(("TEMPORARY", str(temporary)))
    rules = ["(version 1)", "(deny default)"]
    rules += _processes([name for name, _ in parameters])
    rules += _system_files()
    for number, each in enumerate(shown):
        rules += _writable(f"SHOWN_{number}") if each.writable else _readable(f"SHOWN_{number}")
    for number, path in enumerate(protected):
        parameters.append((f"PROTECTED_{number}", str(path)))
        rules += _unchangeable(f"PROTECTED_{number}")
    rules += _writable("TEMPORARY")
    # In all directories: set-id programs would run with the rights of this account.
    rules.append(_rule("deny file-write-setugid"))
    rules.append(_rule("allow system-socket", "(socket-domain AF_UNIX)"))  # for socketpair
    if egress_socket is not None:
        parameters.append(("EGRESS_SOCKET", str(egress_socket)))
        connect = '(remote unix-socket (path-literal (param "EGRESS_SOCKET")))'
        rules.append(_rule("allow network-outbound", connect))
    return Profile("\n".join(rules) + "\n", tuple(parameters))


def _processes(names: Sequence[str]) -> Iterator[str]:
    code = [*(_subpath(path) for path in PROGRAMS), *(_param("subpath", name) for name in names)]
    yield _rule("allow process-fork")
    yield _rule("allow process-exec*", *code)
    yield _rule("allow file-map-executable", *code)
    yield _rule("allow signal process-info*", "(target same-sandbox)")
    yield _rule(
        "allow sysctl-read",
        *(f'(sysctl-name "{name}")' for name in _SYSCTLS),
        *(f'(sysctl-name-prefix "{prefix}")' for prefix in _SYSCTL_PREFIXES),
    )
    yield _rule("allow mach-lookup", *(f'(global-name "{name}")' for name in _MACH_SERVICES))
    # The semaphores of Python's multiprocessing.
    yield _rule("allow ipc-posix-sem", '(ipc-posix-name-prefix "/mp-")')


def _system_files() -> Iterator[str]:
    yield _rule(
        "allow file-read* file-test-existence",
        _literal("/"),  # only the names in it: the program loader fails without them
        *(_subpath(path) for path in (*PROGRAMS, *_SETTING_TREES)),
        *(_literal(f"/private/etc/{name}") for name in _SETTINGS),
        *(_literal(f"/dev/{name}") for name in ("null", "zero", "random", "urandom")),
    )
    yield _rule("allow file-write-data", _literal("/dev/null"), _literal("/dev/zero"))
    yield _rule("allow file-read-data file-write-data file-test-existence", _subpath("/dev/fd"))
    ways = [f'(path-ancestors "{path}")' for path in (*PROGRAMS, *_SETTING_TREES)]
    yield _rule(
        "allow file-read-metadata file-test-existence", *(_literal(link) for link in _LINKS), *ways
    )


def _readable(name: str) -> Iterator[str]:
    yield from _visible(name)
    yield from _unchangeable(name)


def _unchangeable(name: str) -> Iterator[str]:
    yield _rule("deny file-write*", _param("subpath", name))
    # Otherwise a parent directory in an earlier writable mount could be moved and then written.
    yield _rule("deny file-write-unlink", _param("path-ancestors", name))


def _writable(name: str) -> Iterator[str]:
    yield from _visible(name)
    yield _rule("allow file-write*", _param("subpath", name))


def _visible(name: str) -> Iterator[str]:
    yield _rule("allow file-read* file-test-existence", _param("subpath", name))
    way = _param("path-ancestors", name)
    yield _rule("allow file-read-metadata file-test-existence", way)


def _rule(head: str, *filters: str) -> str:
    if not filters:
        return f"({head})"
    return f"({head}\n  " + "\n  ".join(filters) + ")"


def _subpath(path: str) -> str:
    return f'(subpath "{path}")'


def _literal(path: str) -> str:
    return f'(literal "{path}")'


def _param(kind: str, name: str) -> str:
    return f'({kind} (param "{name}"))'
