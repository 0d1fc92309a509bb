"""Read a window of numbered lines from a file of any size, with bounded memory."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from io import BufferedIOBase

from sandbox.backends.limits import FileLimits
from sandbox.errors import FileTooLarge, InvalidRequest, NotText

_SAMPLE = 8192
_BLOCK = 256 * 1024


@dataclass(frozen=True, slots=True)
class Window:
    """`lines` are numbered; `total_lines` is None if the file was too long to count.

    `note` says which part was left out, if any.
    """

    lines: list[str]
    total_lines: int | None
    has_more: bool
    note: str | None = None


def is_binary(sample: bytes) -> bool:
    """Whether a file with this start is not text."""
    return b"\0" in sample


def require_not_binary(sample: bytes, size: int) -> None:
    """Raise NotText if `sample`, the start of a file, is binary."""
    if is_binary(sample):
        raise NotText(
            f"a binary file of {size} bytes. It cannot be read as text; inspect it with a command."
        )


def require_text(sample: bytes, size: int) -> None:
    """Raise NotText unless `sample`, the start of a file, is UTF-8 text."""
    require_not_binary(sample, size)
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        decoder.decode(sample, final=len(sample) >= size)
    except UnicodeDecodeError as error:
        raise NotText(
            f"not UTF-8 text: byte {error.start} of {size} is invalid. Convert it with a command, "
            "for example iconv -f latin1 -t utf-8."
        ) from None


def read_window(
    stream: BufferedIOBase, size: int, offset: int, limit: int, limits: FileLimits
) -> Window:
    """Return lines `offset` to `offset + limit` (counted from 0), numbered from 1.

    A trailing line break ends the last line and starts no new one; `\\r` before it is not shown.
    Raises NotText, FileTooLarge (if `offset` is beyond the scan limit) and InvalidRequest.
    """
    if offset < 0 or limit < 1:
        raise InvalidRequest("offset must be 0 or more, and limit 1 or more.")
    reader = _Lines(stream, limits)
    require_text(reader.sample, size)
    reader.skip(offset)
    if reader.count < offset and not reader.at_end():
        raise FileTooLarge(
            f"line {offset} is beyond the first {limits.scan} bytes, the limit of this tool. "
            "Use a command, for example sed -n."
        )
    if offset and reader.count <= offset and reader.at_end():
        raise InvalidRequest(
            f"offset {offset} is beyond the end: the file has {reader.count} lines."
        )
    lines: list[str] = []
    room, note = limits.read_output, None
    while len(lines) < limit:
        line = reader.next_line()
        if line is None:
            break
        numbered = f"{reader.count:6d} | {line}"
        room -= len(numbered.encode()) + 1
        if room < 0 and lines:
            next_offset = reader.count - 1
            note = f"cut at {limits.read_output} bytes: continue with offset={next_offset}"
            break
        lines.append(numbered)
    if note is None and reader.exhausted and not reader.at_end():
        note = f"only the first {limits.scan} bytes can be read with this tool"
    has_more = note is not None or not reader.at_end()
    return Window(lines, reader.count_rest(), has_more, note)


class _Lines:
    """The lines of a stream, up to the scan limit. `count` is the number of lines read so far."""

    def __init__(self, stream: BufferedIOBase, limits: FileLimits) -> None:
        self._stream = stream
        self._limits = limits
        self._left = limits.scan
        self.sample = stream.read(_SAMPLE)
        stream.seek(0)
        self.count = 0

    @property
    def exhausted(self) -> bool:
        """Whether the scan limit ended the reading."""
        return self._left <= 0

    def at_end(self) -> bool:
        if self._stream.read(1):
            self._stream.seek(-1, 1)
            return False
        return True

    def skip(self, lines: int) -> None:
        """Skip this number of lines, or fewer at the end of the file or at the scan limit.

        Reads whole blocks, because each byte of a file can be a line.
        """
        is_in_line = False
        while lines > 0 and self._left > 0:
            block = self._stream.read(min(_BLOCK, self._left))
            if not block:
                break
            found = min(block.count(b"\n"), lines)
            passed = len(block)
            if found == lines:
                passed = _end_of_line(block, lines)
                self._stream.seek(passed - len(block), 1)
            self._left -= passed
            self.count += found
            lines -= found
            is_in_line = block[passed - 1] != ord("\n")
        if is_in_line and self.at_end():
            self.count += 1

    def next_line(self) -> str | None:
        """The next line, cut to the limit; None at the end."""
        room = self._limits.line * 4
        kept = self._read_piece(room)
        if not kept:
            return None
        length, piece = len(kept), kept
        while not piece.endswith(b"\n"):
            piece = self._read_piece(_BLOCK)
            if not piece:
                break
            length += len(piece)
        self.count += 1
        return _displayed(kept, length, self._limits.line)

    def _read_piece(self, size: int) -> bytes:
        piece = self._stream.readline(min(size, self._left)) if self._left > 0 else b""
        self._left -= len(piece)
        return piece

    def count_rest(self) -> int | None:
        """The number of all lines of the file; None if the scan limit was reached."""
        total, last = self.count, b"\n"
        while self._left > 0 and (block := self._stream.read(min(_BLOCK, self._left))):
            self._left -= len(block)
            total += block.count(b"\n")
            last = block[-1:]
        if self._left <= 0 and not self.at_end():
            return None
        return total + (last != b"\n")


def _displayed(kept: bytes, length: int, limit: int) -> str:
    text = kept.decode(errors="replace").replace("\0", "\ufffd")
    if length == len(kept):
        text = text.removesuffix("\n").removesuffix("\r")
        if len(text) <= limit:
            return text
    return f"{text[:limit]}… [line cut: it has {length} bytes]"


def _end_of_line(block: bytes, number: int) -> int:
    """Return the index after the line break with this number, counted from 1."""
    end = 0
    for _ in range(number):
        end = block.index(b"\n", end) + 1
    return end
