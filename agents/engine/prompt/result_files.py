"""The names of the files that contain long results and messages."""

from __future__ import annotations

import re

from django.utils.crypto import salted_hmac

DIRECTORY = "/sandbox/shared/results"
ASIDE = "/sandbox/shared/result-"
"""The start of the path if the agent has another file at the path of the directory."""

_UNUSUAL = re.compile(r"[^a-z0-9_]")
_PATH = re.compile(rf"(?:{DIRECTORY}/|{ASIDE})[a-z0-9_]{{1,40}}-[0-9a-f]{{24}}\.txt")


def file_name(kind: str, place: str) -> str:
    """Return the name for a place. It is always the same, and cannot be guessed."""
    digest = salted_hmac("agents.engine.prompt.result_files", place, algorithm="sha256").hexdigest()
    return f"{_UNUSUAL.sub('_', kind.lower())[:40]}-{digest[:24]}.txt"


def paths_for(kind: str, place: str) -> tuple[str, str]:
    """Return the two possible paths: in the directory, and next to it."""
    name = file_name(kind, place)
    return f"{DIRECTORY}/{name}", f"{ASIDE}{name}"


def call_place(run_id: str, turn: int, position: int) -> str:
    return f"{run_id}:{turn}:{position}"


def message_place(thread_id: str, number: int) -> str:
    """Return the place of a person's message. `number` is its run's number in the thread."""
    return f"{thread_id}:{number}:message"


def without_paths(result: str) -> str:
    """Return a result without the paths of its file, for the comparison with another call's."""
    return _PATH.sub("", result)
