"""Removal of tracebacks and host directories from error texts for models."""

from __future__ import annotations

import json
import os
import re
import site
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from django.conf import settings

import agents
from agents.services.files.workspaces import WorkspaceLocation
from agents.settings import DataSettings

_TRACEBACK = "Traceback (most recent call last):"
_SHORTEST = 2
"""The minimum of path parts of a directory that is replaced: never `/`."""


def error_text(text: str, location: WorkspaceLocation) -> str:
    """Return `text` without tracebacks, and with sandbox paths instead of host directories.

    Of a traceback, only the line with the exception is kept.
    """
    return _without_directories(_without_tracebacks(text), _directories(location))


def error_content(
    content: Any, location: WorkspaceLocation, *, blocks: bool = False, given: str | None = None
) -> Any:
    """Return a result's content changed like a text by `error_text`.

    The content is a text, JSON, or a list of blocks of which some have texts. With `blocks`, other
    strings do not change, because they can be the data of pictures. `given` is the path that the
    model wrote: a message that starts with it keeps it, so that the model can recognise it.
    """
    if isinstance(content, str):
        quoted = None if given is None else f"{json.dumps(given, ensure_ascii=False)}: "
        if quoted is not None and content.startswith(quoted):
            return quoted + error_text(content.removeprefix(quoted), location)
        return error_text(content, location)
    if isinstance(content, list):
        if blocks:
            return [_block(item, location) for item in content]
        return [error_content(item, location, given=given) for item in content]
    if isinstance(content, dict):
        return {key: error_content(one, location, given=given) for key, one in content.items()}
    return content


def _block(block: Any, location: WorkspaceLocation) -> Any:
    if isinstance(block, dict) and isinstance(block.get("text"), str):
        return {**block, "text": error_text(block["text"], location)}
    return block


def _without_tracebacks(text: str) -> str:
    if _TRACEBACK not in text:
        return text
    kept: list[str] = []
    inside = False
    for line in text.splitlines():
        before, mark, _ = line.partition(_TRACEBACK)
        if mark:
            inside = True
            kept += [before.rstrip()] if before.strip() else []
        elif not inside or (line.strip() and not line.startswith((" ", "\t"))):
            inside = False
            kept.append(line)
    return "\n".join(kept)


def _without_directories(text: str, directories: Mapping[str, str]) -> str:
    if "/" not in text:
        return text
    # Replace the longest path first, because one directory can be inside another.
    names = sorted(directories, key=len, reverse=True)
    pattern = "|".join(re.escape(name) for name in names)
    whole = rf"(?<![\w.~-])(?:{pattern})(?![\w-])(?!\.\w)"
    return re.sub(whole, lambda found: directories[found[0]], text)


def _directories(location: WorkspaceLocation) -> dict[str, str]:
    found: dict[str, str] = {}
    for directory, name in _named(location):
        # Neither call may raise, whatever the host's configuration is: an error would end the run.
        for path in (directory, Path(os.path.realpath(directory))):
            if path.is_absolute() and len(path.parts) >= _SHORTEST:
                found.setdefault(str(path), name)
    return found


def _named(location: WorkspaceLocation) -> Iterator[tuple[Path, str]]:
    vel = DataSettings.now()
    if location.own_directory is not None:
        yield location.own_directory, "/sandbox/workspace"
    for thread_id in {location.thread_id, location.family or location.thread_id}:
        yield vel.workspaces / thread_id, "/sandbox"
    yield vel.DATA_DIR, "<data directory>"
    for name in ("purelib", "platlib", "stdlib"):
        yield Path(sysconfig.get_path(name)), "<packages>"
    yield Path(site.getusersitepackages()), "<packages>"
    for prefix in (sys.prefix, sys.base_prefix):
        # Keep /usr, because it is also a directory of the sandbox.
        if prefix != "/usr":
            yield Path(prefix), "<Python>"
    yield Path(agents.__file__).parents[1], "<Vel>"
    if base := getattr(settings, "BASE_DIR", None):
        yield Path(base), "<project>"
    # The path stays "~" for an account without a home directory.
    yield Path(os.path.expanduser("~")), "<home>"
