"""Which terminals can edit lines and show colors."""

from __future__ import annotations

import os
import sys


def is_capable() -> bool:
    """Return whether the terminal can edit lines and show colors, and the person wants them."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return (
        all(stream.isatty() for stream in streams)
        and os.environ.get("TERM", "") not in ("", "dumb", "unknown")
        and not os.environ.get("NO_COLOR")
    )
