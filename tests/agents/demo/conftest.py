"""The demo's toolbox, if a package index is reachable."""

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
    """Use a data directory with the toolbox in the settings during a test."""
    data = data_with_packages()
    with override_settings(VEL={"DATA_DIR": data}):
        yield find_toolbox(data / "toolboxes", TOOLBOX)
