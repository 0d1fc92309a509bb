"""The mark that lets another process find a sandbox by looking through /proc.

It is an argument of bubblewrap that does nothing (a variable to unset that nobody sets), so the
outer process and the first process inside both show it, from before they run any command.
"""

from __future__ import annotations

import re

from sandbox.errors import SandboxSetupError

_PREFIX = "vel-sandbox:"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,128}")


def marked_argument(marker: str) -> str:
    """Raises `SandboxSetupError` for a marker that is not an opaque token."""
    if not _TOKEN.fullmatch(marker):
        raise SandboxSetupError(
            f"The marker {marker!r} was given; use 1 to 128 letters, digits, '-' or '_'."
        )
    return f"{_PREFIX}{marker}"
