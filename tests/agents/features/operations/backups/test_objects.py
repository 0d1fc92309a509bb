"""An object with anything after its content is refused, wherever its reads end."""

from __future__ import annotations

import io
from typing import Any, cast

import pytest

from agents.features.operations.backups.errors import BackupRefused
from agents.features.operations.backups.objects import pack, unpack


class Reads:
    """A file that returns one of `parts` for each read."""

    def __init__(self, *parts: bytes) -> None:
        self._parts = list(parts)

    def read(self, size: int) -> bytes:
        return self._parts.pop(0) if self._parts else b""


@pytest.mark.parametrize("more", [[b"x"], []])
def test_data_in_a_later_read_is_noticed(more: list[bytes]) -> None:
    target, found = io.BytesIO(), io.BytesIO()
    packed = pack(io.BytesIO(b"content").read, target)
    source = cast(Any, Reads(target.getvalue(), *more))
    if more:
        with pytest.raises(BackupRefused, match="other contents"):
            unpack(source, packed, found.write)
    else:
        unpack(source, packed, found.write)
        assert found.getvalue() == b"content"
