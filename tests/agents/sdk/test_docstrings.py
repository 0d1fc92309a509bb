"""The docstring of each public name has an example, and the examples run."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

import vel
from tests.agents.sdk.scripts import cache, place, run

__all__ = ["cache", "place"]

CONSTANTS = {"DEFAULT_AGENTS"}

PROGRAM = """
import asyncio, doctest, os
import vel

names = {name: getattr(vel, name) for name in vel.__all__}
given = {**names, "asyncio": asyncio, "os": os}
finder = doctest.DocTestFinder(recurse=False)
runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
for name, found in {id(found): (name, found) for name, found in names.items()}.values():
    if found.__doc__:
        for test in finder.find(found, name, module=False, globs=given):
            runner.run(test)
print(runner.summarize(verbose=False))
"""


def test_each_public_name_has_an_example() -> None:
    parser = doctest.DocTestParser()
    without = [
        name
        for name in vel.__all__
        if name not in CONSTANTS and not parser.get_examples(getattr(vel, name).__doc__ or "")
    ]
    assert not without


@pytest.mark.bubblewrap
def test_the_examples_run(place: Path, cache: Path) -> None:
    out = run(PROGRAM, place, cache)
    assert out.splitlines()[-1].startswith("TestResults(failed=0, attempted=1"), out
