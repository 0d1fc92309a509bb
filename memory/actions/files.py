"""The only code that changes a memory file: it adds a revision to a known one."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable

from django.db import IntegrityError, transaction

from memory.errors import Changed, InvalidEdit
from memory.folders import Change
from memory.limits import MAX_FILE_BYTES, MAX_FILES, size_of
from memory.models import MemoryFile, MemoryRevision
from memory.paths import content_type_of
from memory.queries.state import file_state


def check_content(content: str) -> None:
    """Raise `InvalidEdit` for content that no file may have."""
    if "\x00" in content:
        raise InvalidEdit("The content holds a NUL character, which no file may.")
    try:
        size = size_of(content)
    except UnicodeEncodeError:
        raise InvalidEdit("The content holds half a character (a lone surrogate).") from None
    if size > MAX_FILE_BYTES:
        raise InvalidEdit(
            f"The content has {size:,} bytes and a file of the memory may have "
            f"{MAX_FILE_BYTES:,}: keep what matters, or split it into several files."
        )


def check_places(agent_id: str, paths: Iterable[str]) -> None:
    """Raise `InvalidEdit` for new files that an exported folder could not contain together."""
    taken = dict.fromkeys(
        MemoryFile.objects.filter(agent_id=agent_id).values_list("path", flat=True)
    )
    for path in paths:
        _check_place(path, taken)
        taken[path] = None


def _check_place(path: str, taken: Collection[str]) -> None:
    if path in taken:
        return
    if len(taken) >= MAX_FILES:
        raise InvalidEdit(
            f"The memory has no room for {path}, since it may have {MAX_FILES:,} files: add to one "
            "of them."
        )
    folded = path.lower()
    for other in taken:
        lower = other.lower()
        if lower == folded:
            raise InvalidEdit(f"There is {other} already: names differ in more than their case.")
        if lower.startswith(f"{folded}/"):
            raise InvalidEdit(f"{path} is a directory: it holds {other}.")
        if folded.startswith(f"{lower}/"):
            raise InvalidEdit(f"{other} is a file, not a directory.")


@transaction.atomic
def store_change(agent_id: str, change: Change) -> int:
    """Make `change` the file's next revision and return its number.

    Raises `InvalidEdit` (size, place, no file to delete), and `Changed` if the file is not at
    `base_revision`, also when another change commits at the same moment. The caller has checked the
    path. An error leaves no partial change.
    """
    if change.content is not None:
        check_content(change.content)
        check_places(agent_id, [change.path])
    state = file_state(agent_id, change.path)
    if state.revision != change.base_revision:
        raise Changed(f"{change.path} has changed since: look at it again.")
    if change.content is None and state.content is None:
        raise InvalidEdit(f"There is no {change.path} to delete.")
    size = size_of(change.content) if change.content is not None else 0
    number = state.revision + 1
    try:
        with transaction.atomic():
            MemoryRevision.objects.create(
                agent_id=agent_id,
                path=change.path,
                number=number,
                operation=change.operation,
                content=change.content,
                sha256=sha256_of(change.content) if change.content is not None else "",
                size_bytes=size,
                reason=change.reason,
                source=change.source,
                edit_request=change.edit_request,
                created_by_id=change.by_id,
            )
    except IntegrityError:
        raise Changed(f"{change.path} has changed at this moment: look at it again.") from None
    if change.content is None:
        MemoryFile.objects.filter(agent_id=agent_id, path=change.path).delete()
    else:
        MemoryFile.objects.update_or_create(
            agent_id=agent_id,
            path=change.path,
            defaults={
                "content": change.content,
                "content_type": content_type_of(change.path),
                "size_bytes": size,
                "revision": number,
            },
        )
    return number


def sha256_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
