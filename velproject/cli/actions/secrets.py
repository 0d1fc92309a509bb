"""The action of `vel secrets`."""

from __future__ import annotations

import sys

from agents.services.secrets import rotate_secrets
from velproject.cli.errors import FAILED, OK
from velproject.cli.terminal import one_line


def rotate() -> int:
    done = rotate_secrets()
    print(f"Encrypted with the first key: {done.encrypted}.")
    for place in done.unreadable:
        print(
            f"vel: {one_line(place)} cannot be decrypted with any key: restore its key to "
            "VEL_SECRET_KEYS and run this again, or enter it anew.",
            file=sys.stderr,
        )
    return FAILED if done.unreadable else OK
