"""Markers with which another process finds a sandbox in /proc.

A marker is an argument of bubblewrap without effect: it unsets a variable that is never set. Both
the outer process and the first process inside show the argument, even before they run a command.
"""

from __future__ import annotations

import re

from sandbox.errors import SandboxSetupError

_PREFIX = "vel-sandbox:"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,128}")


def marked_argument(marker: str) -> str:
    """Return bubblewrap's argument for `marker`.

    Raises `SandboxSetupError` unless the marker is 1 to 128 letters, digits, `-` and `_`.
    """
    if not _TOKEN.fullmatch(marker):
        raise SandboxSetupError(
            f"Invalid marker {marker!r}. Use 1 to 128 letters, digits, '-' or '_'."
        )
    return f"{_PREFIX}{marker}"
