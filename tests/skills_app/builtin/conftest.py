from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from sandbox.toolbox import Toolbox
from sandbox.toolbox_build import ToolboxRequest, create_toolbox
from sandbox.toolbox_environment import PipFailed
from tests.sandbox.places import reachable_directory
from tests.skills_app.builtin.desk import Desk, copy_packages, desk_in

PACKAGES = ("pandas", "matplotlib", "pypdf")
_keys = count()


@pytest.fixture(scope="session")
def room() -> Iterator[Path]:
    with reachable_directory() as place:
        copy_packages(place)
        yield place


@pytest.fixture
def desk(room: Path) -> Desk:
    """With the system's Python alone."""
    return desk_in(room, room / "skills", f"desk-{next(_keys)}")


@pytest.fixture(scope="session")
def toolbox(room: Path) -> Toolbox:
    """Built once a session, where a package index can be reached."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIP_RETRIES", os.environ.get("PIP_RETRIES", "1"))
        try:
            return create_toolbox(room / "toolboxes", ToolboxRequest("data", PACKAGES))[0]
        except PipFailed as error:
            pytest.skip(f"{', '.join(PACKAGES)} cannot be had here: {error.output[-300:]}")


@pytest.fixture
def equipped_desk(room: Path, toolbox: Toolbox) -> Desk:
    """With pandas, matplotlib and pypdf."""
    return desk_in(room, room / "skills", f"desk-{next(_keys)}", toolbox)
