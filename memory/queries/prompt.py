"""The knowledge of an agent in its prompt: one whole file, and an index of the others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet
from django.db.models.functions import Length, Substr

from agents.hidden_text import one_line, visible
from memory.limits import ALWAYS_BYTES, DESCRIPTION_CHARACTERS, INDEX_BYTES, MAX_FILES, size_of
from memory.models import MemoryRevision
from memory.paths import ALWAYS, PERSONAL_ALWAYS
from memory.queries.rows import files_of, revisions_of

_HEAD_CHARACTERS = 1_000
"""Characters of a file that are searched for its description."""
_MOST_CHANGES = 20
_DESCRIPTION = re.compile(r"description[ \t]*:(.*)", re.IGNORECASE)
_MARKS = re.compile(r"^(?:[#>*+-]+|\d+[.)])[ \t]+")


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The knowledge that a prompt shows.

    `index` has one line for each listed file, and `left_out` is the number of files without a line.
    `always` is the start of the file that every prompt contains; `is_cut` if the rest is missing.
    """

    index: Sequence[str] = ()
    left_out: int = 0
    always: str = ""
    is_cut: bool = False


def knowledge_of(agent_id: str, person_id: int | None = None) -> Knowledge:
    """Return the agent's knowledge for a prompt, or with `person_id` that of a person's `me/`.

    Its size is limited by `INDEX_BYTES` and `ALWAYS_BYTES`.
    """
    always_loaded = ALWAYS if person_id is None else PERSONAL_ALWAYS
    files = files_of(agent_id, person_id).order_by("path")
    heads = list(
        files.exclude(path=always_loaded)
        .annotate(head=Substr("content", 1, _HEAD_CHARACTERS))
        .values_list("path", "head")[:MAX_FILES]
    )
    index = _fitting([_line(path, description_of(head)) for path, head in heads])
    if len(index) < len(heads):
        index = _fitting([_line(path, "") for path, _ in heads])
    text, length = files.filter(path=always_loaded).annotate(
        head=Substr("content", 1, ALWAYS_BYTES + 1), length=Length("content")
    ).values_list("head", "length").first() or ("", 0)
    text = visible(text.strip())
    always = _cut(text)
    is_cut = length > ALWAYS_BYTES or always != text
    return Knowledge(index, len(heads) - len(index), always, is_cut)


def description_of(text: str) -> str:
    """Return a description of a file in one line, from the start of its text.

    The description is `description:` in the front matter, or else the first line with text. It is
    cut at `DESCRIPTION_CHARACTERS`, and is "" for a file without text.
    """
    lines = text.splitlines()
    if lines and lines[0].strip() == "---":
        ends = (number for number, line in enumerate(lines) if number and line.strip() == "---")
        end = next(ends, 0)
        for line in lines[1:end]:
            if found := _DESCRIPTION.fullmatch(line.strip()):
                return one_line(found[1].strip().strip("\"'"), DESCRIPTION_CHARACTERS)
        lines = lines[end + 1 :] if end else lines[1:]
    first = next((line.strip() for line in lines if line.strip(" \t#>*+-=_`|")), "")
    return one_line(_MARKS.sub("", first), DESCRIPTION_CHARACTERS)


def changes_since(
    agent_id: str, since: datetime, *, thread_id: str, person_id: int | None = None
) -> list[str]:
    """Return the paths of files that have changed since a moment, those of deleted files marked.

    After 20 paths, the last entry contains the number of the others. Skills are not included.
    Changes that the thread `thread_id` knows are omitted: its own saved edits, and those for whose
    approval its run waited. With `person_id`, the files of this person's `me/` count, too.
    """
    unasked = Q(edit_request__approval=None)
    waited = Q(edit_request__approval__tool_call__isnull=False)
    revisions = (
        (revisions_of(agent_id) | _revisions_of_person(agent_id, person_id))
        .filter(created_at__gt=since)
        .exclude(Q(edit_request__run__thread=thread_id) & (unasked | waited))
        .order_by("path", "-number")
        .values_list("path", "sha256")
    )
    latest: dict[str, str] = {}
    for path, sha256 in revisions:
        latest.setdefault(path, path if sha256 else f"{path} (deleted)")
    names = list(latest.values())
    more = len(names) - _MOST_CHANGES
    return [*names[:_MOST_CHANGES], *([f"and {more} more"] if more > 0 else [])]


def _revisions_of_person(agent_id: str, person_id: int | None) -> QuerySet[MemoryRevision]:
    if person_id is None:
        return MemoryRevision.every.none()
    return revisions_of(agent_id, person_id)


def _line(path: str, description: str) -> str:
    return f"- {path}: {description}" if description else f"- {path}"


def _fitting(lines: Sequence[str]) -> list[str]:
    """Return the first lines that together fit into `INDEX_BYTES`."""
    left = INDEX_BYTES
    fitting = []
    for line in lines:
        left -= size_of(line) + 1
        if left < 0:
            break
        fitting.append(line)
    return fitting


def _cut(text: str) -> str:
    """Return the first lines of `text` that fit into `ALWAYS_BYTES`, at least a part of one."""
    data = text.encode()
    if len(data) <= ALWAYS_BYTES:
        return text
    start = data[:ALWAYS_BYTES].decode(errors="ignore")
    return start.rpartition("\n")[0] or start
