from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.linux.probe import usable_cgroups
from tests.sandbox import limited
from tests.sandbox.places import reachable_directory, sandbox_in


@pytest.fixture(autouse=True)
def _groups_of_earlier_tests() -> None:
    limited.forget_groups()


@pytest.fixture
def place() -> Iterator[Path]:
    with reachable_directory() as path:
        yield path


@pytest.fixture
def box(place: Path) -> BubblewrapSandbox:
    """A sandbox with a new workspace below `place`."""
    return sandbox_in(place)


@pytest.fixture(params=[True, False], ids=["cgroups", "watchdog"])
def use_cgroups(request: pytest.FixtureRequest) -> bool:
    """Each mechanism for limits, if this host has it."""
    if request.param and usable_cgroups() is None:
        pytest.skip("needs control groups")
    return bool(request.param)
