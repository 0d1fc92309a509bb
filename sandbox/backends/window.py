"""Reading of numbered lines from a part of a file of any size, with bounded memory."""

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
    """The lines of a part of a file, with their numbers.

    `total_lines` is None if the file was too long to count. `note` says which part is omitted, if
    any, and how to read it.
    """

    lines: list[str]
    total_lines: int | None
    has_more: bool
    note: str | None = None


def is_binary(sample: bytes) -> bool:
    """Return whether a file that starts with `sample` is binary."""
    return b"\0" in sample


_WITHOUT_COMMANDS = (
    "No command can reach it here: replace it with write_file, or let a program read it with "
    "read_bytes."
)


def require_not_binary(sample: bytes, size: int, *, commands: bool = True) -> None:
    """Raise NotText if `sample`, the start of a file, is binary.

    `commands` says whether commands can reach the file.
    """
    if is_binary(sample):
        advice = "Inspect it with a command." if commands else _WITHOUT_COMMANDS
        raise NotText(f"a binary file of {size} bytes. It cannot be read as text. {advice}")


def require_text(sample: bytes, size: int, *, commands: bool = True) -> None:
    """Raise NotText unless `sample`, the start of a file, is UTF-8 text."""
    require_not_binary(sample, size, commands=commands)
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        decoder.decode(sample, final=len(sample) >= size)
    except UnicodeDecodeError as error:
        advice = (
            "Convert it with a command, for example iconv -f latin1 -t utf-8."
            if commands
            else _WITHOUT_COMMANDS
        )
        raise NotText(
            f"not UTF-8 text: byte {error.start} of {size} is invalid. {advice}"
        ) from None


@dataclass(frozen=True, slots=True)
class _Line:
    """One line, or a part of a line. `end` is the position of the rest if the line is cut."""

    text: str
    end: int | None = None


def read_window(
    stream: BufferedIOBase,
    size: int,
    offset: int,
    limit: int,
    limits: FileLimits,
    line_offset: int = 0,
    *,
    commands: bool = True,
) -> Window:
    """Return at most `limit` lines from line `offset` (counted from 0), numbered from 1.

    The first line starts at its character `line_offset` (from 0). Lines are cut at `limits.line`;
    with a `line_offset`, the first one may be as long as `limits.read_output`, the limit of the
    whole window. A line break at the end of the file starts no new line, and `\\r` before a line
    break is not shown.

    Args:
        size: The size of the file in bytes, for error messages.
        commands: Whether commands can read the file, for the advice in error messages.

    Raises NotText, FileTooLarge (if `offset` is beyond the scan limit) and InvalidRequest.
    """
    if offset < 0 or limit < 1 or line_offset < 0:
        raise InvalidRequest("offset and line_offset must be 0 or more, and limit 1 or more.")
    reader = _Lines(stream, limits)
    require_text(reader.sample, size, commands=commands)
    reader.skip(offset)
    if reader.count < offset and not reader.at_end():
        raise FileTooLarge(
            f"line {offset} is beyond the first {limits.scan} bytes, the limit of this tool. "
            + ("Use a command, for example sed -n." if commands else "Read only the lines before.")
        )
    if offset and reader.count <= offset and reader.at_end():
        raise InvalidRequest(
            f"offset {offset} is beyond the end: the file has {reader.count} lines. To read on "
            "in a line that was cut, use line_offset."
        )
    lines: list[str] = []
    notes: list[str] = []
    cut: list[tuple[int, int]] = []
    room = limits.read_output
    while len(lines) < limit:
        line = reader.next_line(0 if lines else line_offset)
        if line is None:
            break
        numbered = f"{reader.count:6d} | {line.text}"
        room -= len(numbered.encode()) + 1
        if room < 0 and lines:
            next_offset = reader.count - 1
            notes.append(f"cut at {limits.read_output} bytes: continue with offset={next_offset}")
            break
        lines.append(numbered)
        if line.end is not None:
            cut.append((reader.count - 1, line.end))
    has_more = bool(notes or cut) or not reader.at_end()
    if not notes and reader.exhausted and not reader.at_end():
        notes.append(f"only the first {limits.scan} bytes can be read with this tool")
    if cut:
        notes.append(_about_cut_lines(cut))
    return Window(lines, reader.count_rest(), has_more, "; ".join(notes) or None)


def _about_cut_lines(cut: list[tuple[int, int]]) -> str:
    """Return a sentence on how to read the rest of cut lines.

    `cut` has the offset of each line and the position at which its part ends.
    """
    offset, end = cut[0]
    which = f"line {offset + 1} is" if len(cut) == 1 else f"{len(cut)} lines are"
    first = "" if len(cut) == 1 else " of the first of them"
    return (
        f"{which} cut: read the rest{first} with offset={offset}, line_offset={end} "
        "(characters to skip)"
    )


class _Lines:
    """Reader of a stream's lines, up to the scan limit. `count` is the number of lines read."""

    def __init__(self, stream: BufferedIOBase, limits: FileLimits) -> None:
        self._stream = stream
        self._limits = limits
        self._left = limits.scan
        self.sample = stream.read(_SAMPLE)
        stream.seek(0)
        self.count = 0

    @property
    def exhausted(self) -> bool:
        """Return whether reading ended at the scan limit."""
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

    def next_line(self, start: int = 0) -> _Line | None:
        """Return the next line, from its character `start`, cut to a limit; None at the end.

        Raises InvalidRequest if the line ends before `start`.
        """
        piece = self._read_piece(self._limits.line * 4)
        if not piece:
            return None
        most = self._limits.read_output if start else self._limits.line
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        text, length, passed = "", 0, 0
        while piece:
            length += len(piece)
            if len(text) <= most + 2:  # the line break may be two characters
                found = decoder.decode(piece, final=piece.endswith(b"\n"))
                text += found[max(start - passed, 0) :]
                passed += len(found)
            if piece.endswith(b"\n"):
                break
            piece = self._read_piece(_BLOCK)
        else:
            text += decoder.decode(b"", final=True)
        self.count += 1
        text = text.removesuffix("\n").removesuffix("\r").replace("\0", "\ufffd")
        if start and not text:
            raise InvalidRequest(f"line_offset {start} is beyond the end of line {self.count}.")
        shown = text[:most]
        if start:
            shown = shown.encode()[:most].decode(errors="ignore")
        if len(shown) == len(text):
            return _Line(text)
        return _Line(f"{shown}… [line cut: it has {length} bytes]", start + len(shown))

    def _read_piece(self, size: int) -> bytes:
        piece = self._stream.readline(min(size, self._left)) if self._left > 0 else b""
        self._left -= len(piece)
        return piece

    def count_rest(self) -> int | None:
        """Return the number of all lines of the file; None if the scan limit was reached."""
        total, last = self.count, b"\n"
        while self._left > 0 and (block := self._stream.read(min(_BLOCK, self._left))):
            self._left -= len(block)
            total += block.count(b"\n")
            last = block[-1:]
        if self._left <= 0 and not self.at_end():
            return None
        return total + (last != b"\n")


def _end_of_line(block: bytes, number: int) -> int:
    """Return the index after the line break number `number` of `block`, counted from 1."""
    end = 0
    for _ in range(number):
        end = block.index(b"\n", end) + 1
    return end
