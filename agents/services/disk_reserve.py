"""Refuse work for which the disk has no space."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from agents.disk_space import full_disk, is_short, why_refused
from agents.services.errors import NoSpace


def require_room(size: int = 0) -> None:
    """Raise `NoSpace` if `size` more bytes would use a part of the reserve."""
    if is_short(size):
        raise NoSpace(why_refused())


@contextmanager
def disk_full_refused() -> Iterator[None]:
    """Raise `NoSpace` instead of an error that means that a disk is full."""
    try:
        yield
    except NoSpace:
        raise
    except Exception as error:
        if text := full_disk(error):
            raise NoSpace(text) from error
        raise
