"""The picture in the clipboard of a Linux desktop, read with `wl-paste` or `xclip`."""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

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


def picture() -> tuple[str, bytes]:
    """Return the suffix and the content of the picture in the clipboard.

    Raises `CliError` if there is no clipboard, no picture, or one that is too large.
    """
    program = _program()
    offered = _read(program.path, program.types, MOST_TYPES).decode("utf-8", "replace")
    types = [each for each in SUFFIXES if each in offered.split()]
    if not types:
        raise CliError("The clipboard contains no PNG or JPEG picture.")
    data = _read(program.path, (*program.content, types[0]), UploadSettings.now().UPLOAD_BYTES)
    suffix = SUFFIXES[types[0]]
    try:
        kind_of(f"clipboard{suffix}", BytesIO(data))
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


def _read(program: str, arguments: tuple[str, ...], most: int) -> bytes:
    """Return the output of the program. Raises `CliError` if it fails, is slow or prints more."""
    name = Path(program).name
    end = time.monotonic() + SECONDS
    process = subprocess.Popen(
        [program, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    output, problem = bytearray(), bytearray()
    with process.stdout, process.stderr, selectors.DefaultSelector() as streams:
        streams.register(process.stdout, selectors.EVENT_READ, output)
        streams.register(process.stderr, selectors.EVENT_READ, problem)
        try:
            while streams.get_map():
                found = streams.select(max(0.0, end - time.monotonic()))
                if not found:
                    raise CliError(f"{name} did not answer within {SECONDS:.0f} s.")
                for key, _ in found:
                    data = os.read(key.fd, 65_536)
                    key.data.extend(data)
                    if not data:
                        streams.unregister(key.fileobj)
                if len(output) > most:
                    raise CliError(f"The clipboard contains more than {most:,} bytes.")
                del problem[_MOST_PROBLEM:]
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
    if process.wait():
        told = one_line(problem.decode("utf-8", "replace"), 200)
        raise CliError(f"The clipboard contains no picture ({name}: {told or 'failed'}).")
    return bytes(output)
