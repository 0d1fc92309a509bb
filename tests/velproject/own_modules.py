"""`vel` that finds modules in its data directory, as with PYTHONPATH."""

from __future__ import annotations

import os
import sys
from importlib import import_module


def main() -> None:
    sys.path.append(os.environ["VEL_DATA_DIR"])
    import_module("velproject.cli.main").main()
