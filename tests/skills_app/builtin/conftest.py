from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from agents.demo.task import TOOLBOX
from sandbox.toolboxes.find import find_toolbox
from sandbox.toolboxes.toolbox import Toolbox
from tests.sandbox.places import reachable_directory
from tests.skills_app.builtin.desk import Desk, copy_packages, desk_in
from tests.support.toolboxes import data_with_packages

_keys = count()


@pytest.fixture(scope="session")
def room() -> Iterator[Path]:
    with reachable_directory() as place:
        copy_packages(place)
        yield place


@pytest.fixture
def desk(room: Path) -> Desk:
    """A workspace with only the system's Python."""
    return desk_in(room, room / "skills", f"desk-{next(_keys)}")


@pytest.fixture(scope="session")
def toolbox() -> Toolbox:
    """A toolbox with pandas, matplotlib and pypdf. Skips tests if there is no package index."""
    return find_toolbox(data_with_packages() / "toolboxes", TOOLBOX)


@pytest.fixture
def equipped_desk(room: Path, toolbox: Toolbox) -> Desk:
    """A workspace with pandas, matplotlib and pypdf."""
    return desk_in(room, room / "skills", f"desk-{next(_keys)}", toolbox)
