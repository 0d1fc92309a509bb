"""The host accounts that a root worker gives to sandboxes."""

from __future__ import annotations

from sandbox.errors import SandboxSetupError

FIRST_UID = 0x7A000000
UID_COUNT = 0x01000000
"""0x7A000000 to 0x7AFFFFFF: above every range that distributions and systemd hand out, and below
2^31, where some file systems and tools stop. No passwd entry is needed."""


def uid_for(number: int) -> int:
    """The uid, and gid, of the `number`-th sandbox account, from 0.

    Two threads that must not touch each other's files need different numbers.
    """
    if not 0 <= number < UID_COUNT:
        raise SandboxSetupError(
            f"Sandbox account {number} was asked for; there are {UID_COUNT:,}, from 0."
        )
    return FIRST_UID + number
