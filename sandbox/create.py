"""Sandboxes for any directory of the host, without a workspace."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path

from sandbox.base import BaseSandbox
from sandbox.errors import SandboxSetupError, SandboxUnavailable
from sandbox.host_paths import readable_path, writable_directory
from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.macos.seatbelt import SeatbeltSandbox
from sandbox.own_directory.rules import FileRules
from sandbox.policy import MAX_TIMEOUT, Mount, Network, SandboxPolicy
from sandbox.uids import uid_for


def create_sandbox(
    working_dir: str | Path,
    allowed_paths: Sequence[str | Path] | None = None,
    network: bool = False,
    timeout: float = 30,
    rules: FileRules | None = None,
) -> BaseSandbox:
    """Create a sandbox for commands that write to `working_dir` and can read `allowed_paths`.

    All directories are mounted at their own (resolved) paths. Commands start in `working_dir`,
    which is created if it is missing, and run as its owner. With `network`, commands reach public
    addresses of the internet through a proxy that checks each connection, and never this host or
    its local networks. Commands cannot change files in `working_dir` that programs outside the
    sandbox run, such as git hooks, unless `rules` allow it.

    Args:
        timeout: The default wall time of a command in seconds, at most 600.

    Raises:
        SandboxUnavailable: This host cannot sandbox. Commands never run without a sandbox.
        SandboxSetupError: An argument is invalid, or a path would expose the machine or belongs to
            root.
    """
    system = platform.system()
    if system not in ("Linux", "Darwin"):
        raise SandboxUnavailable(
            f"There is no sandbox for {system}, only for Linux (bubblewrap) and macOS (Seatbelt). "
            "Run this in a Linux machine or container."
        )
    policy = directory_policy(working_dir, allowed_paths, network, timeout, rules)
    return SeatbeltSandbox(policy) if system == "Darwin" else BubblewrapSandbox(policy)


def directory_policy(
    working_dir: str | Path,
    allowed_paths: Sequence[str | Path] | None = None,
    network: bool = False,
    timeout: float = 30,
    rules: FileRules | None = None,
) -> SandboxPolicy:
    """Return the policy for `create_sandbox` with these arguments.

    Creates `working_dir` if it is missing. Raises `SandboxSetupError`.
    """
    _check(working_dir, allowed_paths, network, timeout, rules)
    directory = _working_directory(working_dir)
    readable = [readable_path(path) for path in allowed_paths or ()]
    # Mount the working directory last: it stays writable inside an allowed path.
    mounts = [Mount(path, str(path)) for path in readable]
    own_rules = rules or FileRules()
    mounts.append(Mount(directory, str(directory), writable=True, foreign=True, rules=own_rules))
    return SandboxPolicy(
        mounts=tuple(mounts),
        working_dir=str(directory),
        timeout=float(timeout),
        network=Network.FULL if network else Network.NONE,
    )


def _check(
    working_dir: object, allowed_paths: object, network: object, timeout: object, rules: object
) -> None:
    """Raise a `SandboxSetupError` that names the first invalid argument, if any."""
    if not _is_path(working_dir):
        raise _wrong("working_dir", "a path", working_dir)
    if allowed_paths is not None and not (
        isinstance(allowed_paths, list | tuple) and all(map(_is_path, allowed_paths))
    ):
        raise _wrong("allowed_paths", "a list of paths, or None", allowed_paths)
    if not isinstance(network, bool):
        raise _wrong("network", "True or False", network)
    is_number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if not is_number or not 0 < timeout <= MAX_TIMEOUT:  # type: ignore[operator]
        raise _wrong("timeout", f"seconds above 0, at most {MAX_TIMEOUT:g}", timeout)
    if rules is not None and not isinstance(rules, FileRules):
        raise _wrong("rules", "FileRules or None", rules)


def _is_path(value: object) -> bool:
    return isinstance(value, str | Path) and bool(str(value))


def _wrong(name: str, expected: str, value: object) -> SandboxSetupError:
    return SandboxSetupError(f"{name} must be {expected}, got {value!r:.80}.")


def _working_directory(given: str | Path) -> Path:
    path = writable_directory(given)
    try:
        path.mkdir(parents=True)
    except FileExistsError:
        if not path.is_dir():
            raise SandboxSetupError(
                f"The working directory {path} is not a directory. Use another path."
            ) from None
    except OSError as error:
        raise SandboxSetupError(
            f"The working directory {path} cannot be created: {error.strerror}. Use another path."
        ) from error
    else:
        if os.geteuid() == 0:
            # The directory is new, and commands must not run as root: use the first sandbox
            # account.
            os.chown(path, uid_for(0), uid_for(0))
    return path
