"""The demo's toolbox, built once a session where a package index can be reached."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import override_settings

from agents.demo.task import TOOLBOX, TOOLBOX_PACKAGES
from sandbox.toolbox import Toolbox
from sandbox.toolbox_build import ToolboxRequest, create_toolbox
from sandbox.toolbox_environment import PipFailed
from sandbox.toolbox_find import find_toolbox
from tests.sandbox.places import reachable_directory


@pytest.fixture(scope="session")
def data_with_toolbox() -> Iterator[Path]:
    """A data directory with the toolbox `demo`."""
    with reachable_directory() as data, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIP_RETRIES", os.environ.get("PIP_RETRIES", "1"))
        try:
            create_toolbox(data / "toolboxes", ToolboxRequest(TOOLBOX, TOOLBOX_PACKAGES))
        except PipFailed as error:
            pytest.skip(f"pandas and matplotlib cannot be had here: {error.output[-300:]}")
        yield data


@pytest.fixture
def demo_toolbox(data_with_toolbox: Path) -> Iterator[Toolbox]:
    """The settings see that data directory for the length of a test."""
    with override_settings(VEL={"DATA_DIR": data_with_toolbox}):
        yield find_toolbox(data_with_toolbox / "toolboxes", TOOLBOX)
