"""The mark with which another process finds a sandbox in /proc.

It is an argument of bubblewrap without effect: it unsets a variable that is never set. The outer
process and the first process inside both show it, even before they run a command.
"""

from __future__ import annotations

import re

from sandbox.errors import SandboxSetupError

_PREFIX = "vel-sandbox:"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,128}")


def marked_argument(marker: str) -> str:
    """Return the argument. Raises `SandboxSetupError` if the marker is not an opaque token."""
    if not _TOKEN.fullmatch(marker):
        raise SandboxSetupError(
            f"Invalid marker {marker!r}. Use 1 to 128 letters, digits, '-' or '_'."
        )
    return f"{_PREFIX}{marker}"
