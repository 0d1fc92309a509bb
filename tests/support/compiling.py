"""Compile the test modules once for all pytest processes of a run.

pytest rewrites the assertions of each test module and caches the result. In a fresh clone every
process would start with the same module and rewrite all of them. Each process therefore imports a
different share of them first, and finds most of the others in the cache.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def import_own_share(config: pytest.Config) -> None:
    """Import every n-th test module in the n-th of several pytest-xdist workers."""
    worker = getattr(config, "workerinput", None)
    if worker is None or config.args != config.getini("testpaths"):
        return  # a single process, or a selection of tests
    first, step = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    for path in sorted((ROOT / "tests").rglob("test_*.py"))[first::step]:
        # pytest reports a module that cannot be imported when it collects it.
        with suppress(Exception):
            import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
