"""Files of the thread with long results and messages.

The name of a file is the same for each attempt to write it, so a crash leaves one file. An agent
cannot guess the name and create the file first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.utils.crypto import salted_hmac

from agents.engine.prompt.conversation import cut_middle
from agents.settings import MessageSettings
from sandbox.backends.protocol import FileBackend
from sandbox.errors import FileError, ReadOnlyPath, SandboxError, StorageFull

DIRECTORY = "/sandbox/shared/results"
ASIDE = "/sandbox/shared/result-"
"""The start of the path if the agent has another file at the path of the directory."""

_UNUSUAL = re.compile(r"[^a-z0-9_]")


def file_name(kind: str, place: str) -> str:
    """Return the file name for a long text.

    `kind` is the tool's name or `message`. `place` is the result of `call_place` or
    `message_place`.
    """
    digest = salted_hmac("agents.result_files", place, algorithm="sha256").hexdigest()
    return f"{_UNUSUAL.sub('_', kind.lower())[:40]}-{digest[:24]}.txt"


def paths_for(kind: str, place: str) -> tuple[str, str]:
    """Return the two possible paths of a file: in the directory, and next to it."""
    name = file_name(kind, place)
    return f"{DIRECTORY}/{name}", f"{ASIDE}{name}"


def call_place(run_id: str, turn: int, position: int) -> str:
    return f"{run_id}:{turn}:{position}"


def message_place(thread_id: str, key: str) -> str:
    """Return the place of a person's message. `key` is that of its `UserMessage`."""
    return f"{thread_id}:{key}:message"


@dataclass(frozen=True, slots=True)
class Kept:
    """The file with a long text, or the reason why it is missing."""

    path: str = ""
    problem: str = ""
    size: int = 0
    """The size of the text in bytes."""
    cut: int = 0
    """The number of bytes that do not fit into a file."""


def keep_text(files: Callable[[], FileBackend], kind: str, place: str, text: str) -> Kept:
    """Write a text into the thread's shared files, with the backend of tools. Blocks.

    The middle of a text above `RESULT_BYTES` is cut. If the file cannot be written, the result has
    the problem, and nothing is raised.
    """
    data = text.encode("utf-8")
    limit = MessageSettings.now().RESULT_BYTES
    size = len(data)
    cut = max(0, size - limit)
    if cut:
        data = cut_middle(data.decode("utf-8"), limit).encode("utf-8")
    path, problem = _write(files, paths_for(kind, place), data)
    return Kept(path, problem, size, cut)


def _write(
    backend: Callable[[], FileBackend], paths: Sequence[str], data: bytes
) -> tuple[str, str]:
    """Write the first possible path. Return the path and "", or "" and the problem."""
    problem = ""
    try:
        files = backend()
        for path in paths:
            try:
                files.write_bytes(path, data)
            except (StorageFull, ReadOnlyPath):
                raise
            except FileError as error:
                problem = str(error)
            else:
                return path, ""
    except (SandboxError, OSError) as error:
        problem = str(error)
    return "", problem
