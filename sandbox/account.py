"""The host account that runs a command. The account is never root: see `drop_to`."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from sandbox.errors import SandboxSetupError, SandboxUnavailable
from sandbox.executables import find_executable
from sandbox.policy import SandboxPolicy


@dataclass(frozen=True, slots=True)
class Account:
    uid: int
    gid: int


def account_for(policy: SandboxPolicy) -> Account:
    """Return the host account that commands under `policy` run as.

    The result depends on the account of this process.

    Raises:
        SandboxSetupError: The account or its group would be root, cannot be determined, or needs
            rights that this process does not have.
    """
    own = Account(os.geteuid(), os.getegid())
    if own.uid != 0:
        if policy.uid not in (None, own.uid):
            raise SandboxSetupError(
                f"The policy runs commands as uid {policy.uid}, but this process is uid "
                f"{own.uid} and only root can change accounts. Leave the policy's uid empty, "
                "or start the worker as root."
            )
        return own
    uid = _owner_of_first_writable_mount(policy) if policy.uid is None else policy.uid
    if uid == 0:
        raise SandboxSetupError(_root_refused(policy))
    gid = policy.gid if policy.gid is not None else _primary_group(uid)
    if gid == 0:
        raise SandboxSetupError(
            f"Commands would run in group 0 (root) as uid {uid}. "
            "Give the policy a gid other than 0."
        )
    return Account(uid, gid)


def drop_to(account: Account) -> list[str]:
    """Return the command prefix that switches to `account`; empty if this process already has it.

    Root must not start bubblewrap directly: commands would keep kernel uid 0 inside. They could
    then write /proc/sys and create setuid files of root, and no process limit would apply to them.

    Raises:
        SandboxUnavailable: This process is root, and `setpriv` is missing.
    """
    if os.geteuid() == account.uid:
        return []
    setpriv = find_executable("setpriv")
    if setpriv is None:
        raise SandboxUnavailable(
            "This process is root and needs setpriv to start commands as another account, but it "
            "was not found. Install util-linux."
        )
    return [
        str(setpriv),
        f"--reuid={account.uid}",
        f"--regid={account.gid}",
        "--clear-groups",
        "--inh-caps=-all",
        "--no-new-privs",
        "--",
    ]


def _primary_group(uid: int) -> int:
    try:
        return pwd.getpwuid(uid).pw_gid or uid
    except KeyError:
        return uid  # an account of the reserved range has a group with the same number


def _first_writable(policy: SandboxPolicy) -> Path | None:
    return next((mount.source for mount in policy.mounts if mount.writable), None)


def _owner_of_first_writable_mount(policy: SandboxPolicy) -> int:
    source = _first_writable(policy)
    if source is None:
        raise SandboxSetupError(
            "This process is root and the policy has neither a uid nor a writable mount with an "
            "owner to use. Give the policy a uid, e.g. sandbox.workspace.uid_for(n)."
        )
    try:
        return source.stat().st_uid
    except OSError as error:
        raise SandboxSetupError(f"The mount {source} cannot be read: {error.strerror}.") from error


def _root_refused(policy: SandboxPolicy) -> str:
    source = _first_writable(policy)
    if policy.uid == 0 or source is None:
        return "The policy runs commands as root (uid 0). Give it another uid."
    return (
        f"{source} belongs to root, so commands would run as root. Give it to an unprivileged "
        f"account, e.g. `chown -R nobody {source}`, or create the directory with "
        "sandbox.workspace.prepare, which chooses an account."
    )
