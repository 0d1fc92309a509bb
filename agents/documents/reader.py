"""Reads documents and pictures from untrusted sources, each in its own sandbox.

The file is the standard input, the result is the standard output. The sandbox has no network, no
user's directory, and limits of time, memory and processes. A malicious file can only cause wrong
results about itself.
"""

from __future__ import annotations

import base64
import binascii
import logging
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from agents.documents.pdf_page import MOST_PAGES, PAGE_SIDE, PAGE_ZOOM, PdfPage, parse_page
from agents.settings import DataSettings, UploadSettings
from sandbox.cancellation import Cancellation
from sandbox.errors import SandboxError
from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.policy import Limits, SandboxPolicy
from sandbox.result import ExecutionResult
from sandbox.toolboxes.find import HeldToolbox, hold_toolbox
from sandbox.toolboxes.toolbox import PYTHON_IN_IT, VARIABLES, Toolbox, ToolboxError

logger = logging.getLogger(__name__)

PAGES_PACKAGE = "pypdfium2"
PACKAGES = (
    "pypdf",
    "mammoth",
    "markdownify",
    "openpyxl",
    "python-pptx",
    "striprtf",
    "pillow",
    PAGES_PACKAGE,
)
"""The packages of the toolbox: see docs/guides/uploads.md."""
SECONDS = 30.0
"""Timeout for one file."""
MARKDOWN_CHARS = 1_000_000
PICTURE_SIDE = 1568
"""In pixels. Servers of models reduce larger pictures anyway."""
PICTURE_BYTES = 1_000_000
RAW_SIDE = 2000
"""In pixels, for pictures that are sent unchanged. Servers accept this size for many pictures."""
PICTURE_PIXELS = 100_000_000
"""Larger pictures are not decoded."""
SHOWN_SIDE = 1280
SHOWN_BYTES = 3_000_000
"""Limit for a picture in a page, as PNG. Its base64 form fits the output limit of the sandbox."""
SHOWN_PIXELS = 40_000_000
SHOWN_CPU_SECONDS = 10
"""Short, because people wait for it."""
SHOWN_SECONDS = 30.0
"""On a busy server, the program gets only a part of this time."""

_LIMITS = Limits(
    processes=64,
    memory=1024**3,
    memory_total=1024**3,
    cpus=1.0,
    file_size=1024**2,
    cpu_seconds=int(SECONDS),
    output=4 * MARKDOWN_CHARS + 100_000,
    output_flood=8 * MARKDOWN_CHARS,
    tmp_size=16 * 1024**2,
)
_SHOWN_LIMITS = replace(
    _LIMITS,
    memory=512 * 1024**2,
    memory_total=512 * 1024**2,
    cpu_seconds=SHOWN_CPU_SECONDS,
)
_ENDINGS = {
    3: "it is damaged, or its content does not match its name",
    4: "it needs a password",
    5: "it contains no text; it may be a scan",
    6: "its unpacked content is larger than the limit for a file",
    7: "it is damaged",
}
TOO_MUCH = "reading it took more time or memory than the limit for a file"
FAILED = "it could not be read"


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture for a model. Sizes are in pixels."""

    media_type: str
    width: int
    height: int
    data: bytes


class DocumentReader:
    """Reads files of one person with one system account. Blocks.

    `problem` is a message if files cannot be read, for people and models. Otherwise it is "".
    """

    def __init__(self, uid: int | None, gid: int | None, marker: str = "") -> None:
        self._account = (uid, gid)
        self._marker = marker
        self._held: HeldToolbox | None = None
        self.problem = ""
        name = UploadSettings.now().DOCUMENTS_TOOLBOX
        if not name:
            self.problem = "this installation makes none"
            return
        try:
            self._held = hold_toolbox(DataSettings.now().toolboxes, name)
            BubblewrapSandbox(self._policy(()))
        except ToolboxError as error:
            logger.warning("uploads are not read: %s", error)
            self.problem = f"the toolbox {name!r} is missing on the server"
        except SandboxError as error:
            logger.warning("uploads are not read: %s", error)
            self.problem = "the server has no working sandbox, and Vel reads no file outside one"

    def markdown(self, reader: str, data: bytes, cancel: Cancellation) -> tuple[str, str]:
        """Return (the text, ""), or ("", the reason for the failure).

        `reader` is `Kind.reader` of the file. A text above `MARKDOWN_CHARS` characters is cut, with
        a note.
        """
        if self.problem:
            return "", self.problem
        told = (("VEL_READER", reader), ("VEL_LIMIT", str(MARKDOWN_CHARS)))
        result = self._run("markdown.py", told, data, cancel)
        if isinstance(result, str):
            return "", result
        return result.stdout, ""

    def picture(self, data: bytes, cancel: Cancellation) -> Picture | str:
        """Return the picture reduced in size, or the reason for the failure.

        If pictures cannot be decoded, small ones are returned unchanged.
        """
        if self.problem:
            return raw_picture(data) or "it is too large to be shown as it is"
        told = _told_of_picture(PICTURE_SIDE, PICTURE_BYTES, PICTURE_PIXELS, "")
        made = _decoded(self._run("picture.py", told, data, cancel))
        # The program has read an untrusted file, so check its output.
        return made if isinstance(made, str) else raw_picture(made) or FAILED

    def shown(self, data: bytes, cancel: Cancellation) -> bytes | str:
        """Return a PNG for people, each side at most `SHOWN_SIDE` pixels, or why there is none.

        The program has read an untrusted file: let `agents.png` encode its output again.
        """
        if self.problem:
            return self.problem
        told = _told_of_picture(SHOWN_SIDE, SHOWN_BYTES, SHOWN_PIXELS, "PNG")
        return _decoded(self._run("picture.py", told, data, cancel, self._shown_policy(told)))

    def pdf_page(self, data: bytes, number: int, cancel: Cancellation) -> PdfPage | str:
        """Return a page of a PDF, from 1, or the reason why the document cannot be read.

        The program has read an untrusted file: let `agents.png` encode its picture again.
        """
        if self.problem:
            return self.problem
        assert self._held is not None
        toolbox = self._held.toolbox
        if PAGES_PACKAGE in lacking(toolbox):
            return (
                f"the toolbox {toolbox.name!r} on the server was built without {PAGES_PACKAGE} "
                "(vel doctor shows the command that builds it again)"
            )
        told = {
            "VEL_PAGE": number,
            "VEL_PAGES": MOST_PAGES,
            "VEL_SIDE": PAGE_SIDE,
            "VEL_ZOOM": PAGE_ZOOM,
            "VEL_BYTES": SHOWN_BYTES,
        }
        policy = self._shown_policy(_texts(told))
        result = self._execute("pdf_page.py", data, cancel, policy)
        if isinstance(result, str):
            return result
        return parse_page(result.stdout, _problem_of(result))

    def _run(
        self,
        program: str,
        told: tuple[tuple[str, str], ...],
        data: bytes,
        cancel: Cancellation,
        policy: SandboxPolicy | None = None,
    ) -> ExecutionResult | str:
        """Return the program's output, or a message for people."""
        result = self._execute(program, data, cancel, policy or self._policy(told))
        return result if isinstance(result, str) else _problem_of(result) or result

    def _execute(
        self, program: str, data: bytes, cancel: Cancellation, policy: SandboxPolicy
    ) -> ExecutionResult | str:
        """Return the result of the program, which can have failed, or a message for people."""
        try:
            sandbox = BubblewrapSandbox(policy)
            source = _source(program)
            execution = sandbox.start_python(source, stdin=data, marker=self._marker, cancel=cancel)
            return execution.wait()
        except SandboxError as error:
            logger.warning("an upload was not read: %s", error)
            return FAILED

    def _shown_policy(self, told: tuple[tuple[str, str], ...]) -> SandboxPolicy:
        return replace(self._policy(told), timeout=SHOWN_SECONDS, limits=_SHOWN_LIMITS)

    def _policy(self, told: tuple[tuple[str, str], ...]) -> SandboxPolicy:
        assert self._held is not None
        toolbox: Toolbox = self._held.toolbox
        return SandboxPolicy(
            mounts=toolbox.mounts,
            working_dir="/tmp",  # noqa: S108 - the sandbox's own
            timeout=SECONDS,
            limits=_LIMITS,
            environment=(*VARIABLES, *told),
            uid=self._account[0],
            gid=self._account[1],
            python=PYTHON_IN_IT,
        )


def lacking(toolbox: Toolbox) -> list[str]:
    """Return the packages for documents that the toolbox does not have."""
    present = {name for name, _ in toolbox.distributions}
    return [name for name in PACKAGES if name not in present]


def raw_picture(data: bytes) -> Picture | None:
    """Return the picture unchanged if its header has a type and size that models accept."""
    found = picture_size(data) if len(data) <= PICTURE_BYTES else None
    if found is None or max(found[1:]) > RAW_SIDE:
        return None
    return Picture(*found, data)


def _told_of_picture(side: int, size: int, pixels: int, only: str) -> tuple[tuple[str, str], ...]:
    """Return the program's variables. `only` is the required format, or "" for the shortest."""
    return _texts({"VEL_SIDE": side, "VEL_BYTES": size, "VEL_PIXELS": pixels, "VEL_ONLY": only})


def _texts(told: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)) for name, value in told.items())


def _problem_of(result: ExecutionResult) -> str:
    """Return why the program failed, for people, or ""."""
    if result.timed_out or result.truncated or result.exit_code >= 128:
        return TOO_MUCH
    if result.exit_code == 0:
        return ""
    logger.info("an upload was not read: %s", result.stderr[-500:])
    if "MemoryError" in result.stderr:
        return TOO_MUCH
    return _ENDINGS.get(result.exit_code, FAILED)


def _decoded(result: ExecutionResult | str) -> bytes | str:
    if isinstance(result, str):
        return result
    try:
        return base64.b64decode(result.stdout, validate=True)
    except binascii.Error:
        return FAILED


@cache
def _source(program: str) -> str:
    return files("agents.documents").joinpath("programs", program).read_text(encoding="utf-8")


_FRAMES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
WEBP_HEADER = 30
_ALONE = frozenset({0x01, *range(0xD0, 0xD9)})


def picture_size(data: bytes) -> tuple[str, int, int] | None:
    """Return (media type, width, height) of a PNG, JPEG, GIF or WebP. None for other data."""
    try:
        found = _read(data)
    except (struct.error, IndexError):
        return None
    return found if found is not None and found[1] > 0 and found[2] > 0 else None


def _read(data: bytes) -> tuple[str, int, int] | None:
    if data[:8] == b"\x89PNG\r\n\x1a\n" and data[12:16] == b"IHDR":
        return ("image/png", *struct.unpack_from(">II", data, 16))
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return ("image/gif", *struct.unpack_from("<HH", data, 6))
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP" and len(data) >= WEBP_HEADER:
        return _webp(data)
    if data[:3] == b"\xff\xd8\xff":
        return _jpeg(data)
    return None


def _webp(data: bytes) -> tuple[str, int, int] | None:
    kind = data[12:16]
    if kind == b"VP8X":
        width = int.from_bytes(data[24:27], "little") + 1
        return "image/webp", width, int.from_bytes(data[27:30], "little") + 1
    if kind == b"VP8L" and data[20] == 0x2F:
        bits = int.from_bytes(data[21:25], "little")
        return "image/webp", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack_from("<HH", data, 26)
        return "image/webp", width & 0x3FFF, height & 0x3FFF
    return None


def _jpeg(data: bytes) -> tuple[str, int, int] | None:
    at = 2
    while data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1
        elif marker in _ALONE:
            at += 2
        elif marker in _FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return "image/jpeg", width, height
        else:
            length = struct.unpack_from(">H", data, at + 2)[0]
            at += 2 + max(2, length)
    return None
