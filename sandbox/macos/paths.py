"""Which paths of a policy macOS can show, and which paths it must not show.

macOS has no mount namespaces: commands see the host's own tree, and Seatbelt compares resolved
paths (/tmp is /private/tmp).
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
"""Never shown, including their contents and their parents. Programs are readable without it."""

_SHARED = frozenset({"/private/tmp", "/private/var/tmp", "/private/var/folders", "/Volumes"})
"""Not shown as a whole; a directory in them can be."""

_SECRET_NAMES = frozenset(
    {".ssh", ".gnupg", ".aws", ".kube", ".docker", ".netrc", ".config", "Keychains"}
)


@dataclass(frozen=True, slots=True)
class ShownPath:
    """A resolved path, and whether commands may write it and its contents."""

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
