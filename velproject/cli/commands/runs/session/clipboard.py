"""The picture in the clipboard of a Linux desktop, read with `wl-paste` or `xclip`."""

from __future__ import annotations

import asyncio
import os
import shutil
from asyncio.subprocess import DEVNULL, PIPE
from dataclasses import dataclass
from io import BytesIO

from agents.documents.kinds import NotTaken, kind_of
from agents.doors.cli.errors import CliError
from agents.doors.cli.terminal import one_line
from agents.settings import UploadSettings

SECONDS = 5.0
"""The clipboard belongs to another program, which may never answer."""
SUFFIXES = {"image/png": ".png", "image/jpeg": ".jpg"}
MOST_TYPES = 100_000
_MOST_PROBLEM = 1_000
UPLOAD = "Send a picture with its path or with --upload."


@dataclass(frozen=True, slots=True)
class _Program:
    """A program that prints the types of the clipboard, or its content of one type."""

    path: str
    types: tuple[str, ...]
    content: tuple[str, ...]
    """The arguments before the type."""


async def picture() -> tuple[str, bytes]:
    """Return the suffix and the content of the picture in the clipboard.

    Raises `CliError` if there is no clipboard, no picture, or one that is too large.
    """
    program = _program()
    offered = (await _read(program.path, program.types, MOST_TYPES)).decode("utf-8", "replace")
    types = [each for each in SUFFIXES if each in offered.split()]
    if not types:
        raise CliError("The clipboard contains no PNG or JPEG picture.")
    data = await _read(
        program.path, (*program.content, types[0]), UploadSettings.now().UPLOAD_BYTES
    )
    suffix = SUFFIXES[types[0]]
    try:
        kind_of(suffix, BytesIO(data))
    except NotTaken as problem:
        raise CliError(f"The picture in the clipboard {problem}.") from None
    return suffix, data


def _program() -> _Program:
    """Return the installed program for the desktop of this terminal. Raises `CliError`."""
    desktops = {
        "WAYLAND_DISPLAY": ("wl-paste", ("--list-types",), ("--no-newline", "--type")),
        "DISPLAY": (
            "xclip",
            ("-selection", "clipboard", "-out", "-target", "TARGETS"),
            ("-selection", "clipboard", "-out", "-target"),
        ),
    }
    wanted = [each for variable, each in desktops.items() if os.environ.get(variable)]
    if not wanted:
        raise CliError(f"This terminal has no clipboard, for example because of SSH. {UPLOAD}")
    for name, types, content in wanted:
        if path := shutil.which(name):
            return _Program(path, types, content)
    packages = {"wl-paste": "wl-clipboard", "xclip": "xclip"}
    raise CliError(f"Pictures of the clipboard need the package {packages[wanted[0][0]]}. {UPLOAD}")


async def _read(program: str, arguments: tuple[str, ...], most: int) -> bytes:
    """Return the output of the program. Raises `CliError` if it fails, is slow or prints more."""
    name = os.path.basename(program)
    process = await asyncio.create_subprocess_exec(
        program, *arguments, stdin=DEVNULL, stdout=PIPE, stderr=PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        async with asyncio.timeout(SECONDS):
            data, problem = await asyncio.gather(
                _at_most(process.stdout, most + 1), _at_most(process.stderr, _MOST_PROBLEM)
            )
            if len(data) > most:
                raise CliError(f"The clipboard contains more than {most:,} bytes.")
            await process.wait()
    except TimeoutError:
        raise CliError(f"{name} did not answer within {SECONDS:.0f} s.") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        told = one_line(problem.decode("utf-8", "replace"), 200)
        raise CliError(f"The clipboard contains no picture ({name}: {told or 'failed'}).")
    return data


async def _at_most(stream: asyncio.StreamReader, most: int) -> bytes:
    try:
        return await stream.readexactly(most)
    except asyncio.IncompleteReadError as end:
        return end.partial
