"""A `vel` for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.velproject.command import Vel, new_vel


@pytest.fixture
def vel() -> Iterator[Vel]:
    with new_vel() as command:
        yield command
