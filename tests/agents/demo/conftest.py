"""The demo's toolbox, where a package index can be reached."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import override_settings

from agents.demo.task import TOOLBOX
from sandbox.toolboxes.find import find_toolbox
from sandbox.toolboxes.toolbox import Toolbox
from tests.support.toolboxes import data_with_packages


@pytest.fixture
def demo_toolbox() -> Iterator[Toolbox]:
    """The settings see a data directory that has it, for the length of a test."""
    data = data_with_packages()
    with override_settings(VEL={"DATA_DIR": data}):
        yield find_toolbox(data / "toolboxes", TOOLBOX)
