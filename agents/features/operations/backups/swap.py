"""The renames at the end of a restore: all of them happen, or none, also if the process is killed.

Before the first rename, a journal lists all of them. Deleting the journal completes the restore.
Vel does not start while there is a journal (`operations.starting`).
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from agents.features.operations.backups.errors import BackupRefused
from agents.features.operations.owner import give_to_owner
from agents.features.operations.starting import JOURNAL

NOTHING = Path()
"""Instead of a new entry: the place becomes empty."""


@dataclass(frozen=True, slots=True)
class Rename:
    """One place. What is there becomes `kept`, and `new` becomes `place`. Either may be empty."""

    place: str
    new: str = ""
    kept: str = ""


class Journal(ABC):
    """The list of renames that a restore has begun."""

    @abstractmethod
    def write(self, renames: Sequence[Rename]) -> None:
        """Store the list safely, before the first rename."""

    @abstractmethod
    def remove(self) -> None:
        """Complete the restore. Afterwards, nobody can undo it."""


class FileJournal(Journal):
    """A file in the data directory."""

    def __init__(self, data: Path) -> None:
        self._file = data / JOURNAL

    def write(self, renames: Sequence[Rename]) -> None:
        part = self._file.with_name(f"{JOURNAL}.new")
        part.unlink(missing_ok=True)
        try:
            descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(as_text(renames))
                file.flush()
                give_to_owner(descriptor)
                os.fsync(descriptor)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        os.rename(part, self._file)
        sync_directory(self._file.parent)

    def read(self) -> list[Rename]:
        """Return the renames of an interrupted restore, empty if there is none."""
        try:
            text = self._file.read_text()
        except FileNotFoundError:
            return []
        return from_text(text)

    def remove(self) -> None:
        self._file.unlink(missing_ok=True)
        self._file.with_name(f"{JOURNAL}.new").unlink(missing_ok=True)
        sync_directory(self._file.parent)


def as_text(renames: Sequence[Rename]) -> str:
    return json.dumps([asdict(each) for each in renames])


def from_text(text: str) -> list[Rename]:
    """Read the list of a journal. Raises `BackupRefused`."""
    try:
        return [Rename(**each) for each in json.loads(text)]
    except (ValueError, TypeError):
        raise BackupRefused(
            "The list of the renames of the interrupted restore is damaged. Rename the parts "
            "yourself: the old ones have `before-restore` in their names."
        ) from None


def planned(new: Path, place: Path, kept: Path) -> list[Rename]:
    """Return the rename that puts `new` at `place`. An entry that is there becomes `kept`."""
    has_old, has_new = os.path.lexists(place), new != NOTHING and os.path.lexists(new)
    if not (has_old or has_new):
        return []
    return [Rename(str(place), str(new) if has_new else "", str(kept) if has_old else "")]


def swap(renames: Sequence[Rename], journal: Journal) -> None:
    """Make all renames. If one fails, undo the others and raise the error."""
    journal.write(renames)
    try:
        for each in renames:
            if each.kept:
                with suppress(FileExistsError):
                    os.mkdir(os.path.dirname(each.kept), 0o700)
                os.rename(each.place, each.kept)
            if each.new:
                os.rename(each.new, each.place)
        for directory in {os.path.dirname(each.place) for each in renames}:
            sync_directory(Path(directory))
    except BaseException:
        put_back(renames)
        if isinstance(journal, FileJournal):  # otherwise, it goes with the new tables
            journal.remove()
        raise
    journal.remove()


def put_back(renames: Sequence[Rename]) -> None:
    """Undo all renames that were made. You can repeat it."""
    for each in reversed(renames):
        # Without an old entry, whatever is at the place is new.
        is_made = os.path.lexists(each.kept) if each.kept else not os.path.lexists(each.new)
        if is_made and each.new and os.path.lexists(each.place):
            os.makedirs(os.path.dirname(each.new), 0o700, exist_ok=True)
            os.rename(each.place, each.new)
        if is_made and each.kept:
            os.rename(each.kept, each.place)
        if each.kept:
            with suppress(OSError):  # it is missing, or has other entries
                os.rmdir(os.path.dirname(each.kept))
    for directory in {os.path.dirname(each.place) for each in renames}:
        sync_directory(Path(directory))


def sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
