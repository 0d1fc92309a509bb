"""A `vel` for each test."""

from tests.velproject.conftest import vel

__all__ = ["vel"]
