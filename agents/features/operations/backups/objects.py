"""Contents as compressed objects, named by the SHA-256 of their contents."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from agents.features.operations.backups.errors import BackupRefused

BLOCK = 1024**2
_LEVEL = 3


@dataclass(frozen=True, slots=True)
class Packed:
    """The SHA-256 of a content, and its size in bytes before the compression."""

    sha256: str
    size: int


def pack(read: Callable[[int], bytes], target: BinaryIO) -> Packed:
    """Compress everything that `read` returns into `target`.

    `read` gets a number of bytes, and returns b"" at the end.
    """
    digest, size, packer = hashlib.sha256(), 0, zlib.compressobj(_LEVEL)
    while block := read(BLOCK):
        digest.update(block)
        size += len(block)
        target.write(packer.compress(block))
    target.write(packer.flush())
    return Packed(digest.hexdigest(), size)


def unpack(source: BinaryIO, expected: Packed, write: Callable[[bytes], object]) -> None:
    """Decompress an object into `write`. At most `expected.size` bytes are written.

    Raises:
        BackupRefused: The object is not the expected one.
    """
    digest, left, unpacker = hashlib.sha256(), expected.size, zlib.decompressobj()
    try:
        while not unpacker.eof:
            data = unpacker.unconsumed_tail or source.read(BLOCK)
            # One byte more than expected is enough to notice a bomb.
            block = unpacker.decompress(data, min(BLOCK, left + 1))
            if not data and not block:
                raise _damaged(expected, "is truncated")
            left -= len(block)
            if left < 0:
                raise _damaged(expected, "is larger than the manifest says")
            digest.update(block)
            write(block)
    except zlib.error:
        raise _damaged(expected, "is damaged") from None
    if unpacker.unused_data or source.read(1) or left or digest.hexdigest() != expected.sha256:
        raise _damaged(expected, "has other contents than the manifest says")


def _damaged(expected: Packed, why: str) -> BackupRefused:
    return BackupRefused(
        f"The object {expected.sha256[:12]} of the backup {why}. Use another backup, and check the "
        "storage of the backups."
    )
