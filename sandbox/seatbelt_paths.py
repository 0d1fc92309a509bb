"""What of a policy macOS can show, and what it must not.

macOS has no mount namespaces: commands see the host's own tree, and Seatbelt compares the paths
of the files themselves, behind all links (/tmp is /private/tmp).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sandbox.errors import SandboxSetupError
from sandbox.policy import Mount, SandboxPolicy

_SYSTEM = (
    *("/System", "/Library", "/Applications", "/usr", "/bin", "/sbin", "/dev", "/cores"),
    *("/private/etc", "/private/var/db", "/private/var/run", "/private/var/root"),
    *("/private/var/select", "/opt/homebrew", "/Network"),
)
"""Never shown, nor anything in them or above them. Programs can be read without."""

_SHARED = frozenset({"/private/tmp", "/private/var/tmp", "/private/var/folders", "/Volumes"})
"""Not shown as a whole."""

_SECRET_NAMES = frozenset(
    {".ssh", ".gnupg", ".aws", ".kube", ".docker", ".netrc", ".config", "Keychains"}
)


@dataclass(frozen=True, slots=True)
class ShownPath:
    """A path without links, and whether commands may write it and what is below."""

    path: Path
    writable: bool


def shown_paths(policy: SandboxPolicy, home: Path) -> list[ShownPath]:
    """The mounts of `policy`, in their order, as paths without links.

    Raises `SandboxSetupError` for a mount at another path than its own, for one that holds or
    lies in what a Mac keeps of itself or of its users, and for a working directory in none.
    """
    shown = [_shown(mount, home.resolve()) for mount in policy.mounts]
    start = Path(policy.working_dir).resolve()
    if not any(start.is_relative_to(each.path) for each in shown):
        raise SandboxSetupError(
            f"The working directory {policy.working_dir} is in none of the policy's mounts. "
            "Mount it."
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
            f"{mount.source} was to be seen at {mount.target}, but on macOS commands see every "
            "directory at its own path only. Use a sandbox over a directory (create_sandbox), or "
            "Linux."
        )
    if not (path.is_dir() or path.is_file()):
        raise SandboxSetupError(
            f"The mount {path} is a socket, a pipe or a device, through which commands would "
            "reach the host. Mount files and directories only."
        )
    if _gives_the_machine_away(path) or _gives_an_account_away(path, home):
        raise SandboxSetupError(
            f"The mount {mount.source} (which is {path}) holds what this Mac or its users keep "
            "private or run. Use a directory of its own."
        )
    return ShownPath(path, mount.writable)


def _gives_the_machine_away(path: Path) -> bool:
    return str(path) in _SHARED or any(
        path.is_relative_to(tree) or Path(tree).is_relative_to(path) for tree in _SYSTEM
    )


def _gives_an_account_away(path: Path, home: Path) -> bool:
    users = Path("/Users")
    return (
        path in (users, home)
        or path.parent == users
        or home.is_relative_to(path)
        or path.is_relative_to(home / "Library")
        or not _SECRET_NAMES.isdisjoint(path.parts)
    )
