"""The host accounts that a worker uses for sandboxes if it runs as root."""

from __future__ import annotations

from sandbox.errors import SandboxSetupError

FIRST_UID = 0x7A000000
UID_COUNT = 0x01000000
"""0x7A000000 to 0x7AFFFFFF: above every range that distributions and systemd assign, and below
2^31, the limit of some file systems and tools. No passwd entry is needed."""


def uid_for(number: int) -> int:
    """Return the uid, which is also the gid, of sandbox account `number`, counted from 0.

    Two conversations that must not access each other's files need different numbers.
    """
    if not 0 <= number < UID_COUNT:
        raise SandboxSetupError(
            f"There is no sandbox account {number}: valid numbers are 0 to {UID_COUNT - 1:,}."
        )
    return FIRST_UID + number
