"""What the files are called in which long results and messages lie whole."""

from __future__ import annotations

import re

from django.utils.crypto import salted_hmac

DIRECTORY = "/sandbox/shared/results"
ASIDE = "/sandbox/shared/result-"
"""Where a file goes if an agent has put something else in the place of the directory."""

_UNUSUAL = re.compile(r"[^a-z0-9_]")
_PATH = re.compile(rf"(?:{DIRECTORY}/|{ASIDE})[a-z0-9_]{{1,40}}-[0-9a-f]{{24}}\.txt")


def file_name(kind: str, place: str) -> str:
    """The same for the same place, and known to nobody before the file is there."""
    digest = salted_hmac("agents.engine.result_files", place, algorithm="sha256").hexdigest()
    return f"{_UNUSUAL.sub('_', kind.lower())[:40]}-{digest[:24]}.txt"


def paths_for(kind: str, place: str) -> tuple[str, str]:
    """Where the file may be: in the directory, or beside it."""
    name = file_name(kind, place)
    return f"{DIRECTORY}/{name}", f"{ASIDE}{name}"


def call_place(run_id: str, turn: int, position: int) -> str:
    return f"{run_id}:{turn}:{position}"


def message_place(thread_id: str, number: int) -> str:
    """Of the message of a thread's run `number`."""
    return f"{thread_id}:{number}:message"


def without_paths(result: str) -> str:
    """A result that is compared with another call's: its file has a name of its own."""
    return _PATH.sub("", result)
