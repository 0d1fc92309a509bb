"""Call `vel` in the process of the test, which receives its exceptions."""

from __future__ import annotations

import os
from unittest.mock import patch

from velproject.cli.main import vel


def call(*words: str) -> int:
    """Call a command and return its exit code."""
    with patch.dict(os.environ, {"VEL_LOG_LEVEL": "ERROR"}):
        return vel.main(args=list(words), prog_name="vel", standalone_mode=False) or 0
