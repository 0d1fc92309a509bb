"""A `vel` for each test of its command."""

from tests.velproject.conftest import vel

__all__ = ["vel"]
