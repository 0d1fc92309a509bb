from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.bubblewrap import BubblewrapSandbox
from tests.sandbox.places import reachable_directory, sandbox_in


@pytest.fixture
def place() -> Iterator[Path]:
    with reachable_directory() as path:
        yield path


@pytest.fixture
def box(place: Path) -> BubblewrapSandbox:
    """A sandbox over a fresh workspace below `place`."""
    return sandbox_in(place)
