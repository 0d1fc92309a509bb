"""Requests that a local execution backend refuses to a process of root."""

import pytest

from sandbox.errors import SandboxSetupError
from sandbox.interop.deepagents import LocalExecutionBackend
from tests.sandbox.places import reachable_directory


def test_a_root_of_root_is_refused() -> None:
    with reachable_directory() as place, pytest.raises(SandboxSetupError, match="belongs to root"):
        LocalExecutionBackend(place)
