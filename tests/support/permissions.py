"""Processes that permission bits bind, also if root runs the tests."""

from __future__ import annotations

import os

_POWERS = "-dac_override,-dac_read_search"


def bound_by_permissions() -> list[str]:
    """Return the start of a command line whose process may not pass over permission bits.

    The process keeps its account: directories of the account need the bits of their owner.
    """
    if os.geteuid() != 0:
        return []
    return ["setpriv", f"--bounding-set={_POWERS}", f"--inh-caps={_POWERS}", "--"]
