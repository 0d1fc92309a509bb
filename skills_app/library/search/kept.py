"""Keep the analysed skills of a large library in a file, for other processes.

A process that finds its library in the file needs 0.2 s for its first search instead of 1 s. The
ranking is the same with and without the file.

The file is SQLite. Vel trusts its content, so its directory must belong to this account, and other
accounts must not be able to write there.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from agents.kernel.lazy_modules import lazy_modules
from sandbox.errors import SetupError
from skills_app.library.search.analysis import ANALYSIS
from skills_app.library.search.document import (
    Analysed,
    SkillDocument,
    analyse,
    cache,
    dumped,
    loaded,
)

with lazy_modules:
    # numpy and the weights take 0.2 s.
    from skills_app.library.search import meaning

logger = logging.getLogger(__name__)

NAME = "skill-search.sqlite3"
MOST = 5_000
"""The skills in the file. The ones that were written last stay."""
WAIT = 1.0
"""The seconds that a process waits for another one that writes the file."""
_TABLE = (
    "CREATE TABLE IF NOT EXISTS skill (digest TEXT PRIMARY KEY, analysis TEXT NOT NULL, "
    "analysed TEXT NOT NULL, vector BLOB)"
)
_SELECT = (
    "SELECT digest, analysed, vector FROM skill "
    "WHERE analysis = ? AND digest IN (SELECT value FROM json_each(?))"
)
_Row = tuple[str, str, str, bytes | None]


@dataclass(slots=True)
class Kept:
    """The file in `directory`.

    A file that is damaged is replaced. If the file cannot be read or written for another reason,
    such as a full disk, the log says so, and the library is analysed as without the file.
    """

    directory: Path
    _written: dict[str, bool] = field(default_factory=dict)
    """The digests that are known to be in the file, with whether there is a vector."""

    def __post_init__(self) -> None:
        check_directory(self.directory)

    def analysed(self, documents: Sequence[SkillDocument]) -> list[Analysed]:
        """Return the analysis of each document, from the file where it has it."""
        missing = [document.digest for document in documents if not cache.get(document.digest)]
        if missing:
            self._use(lambda file: self._read(file, missing))
        return [*map(analyse, documents)]

    def keep(self, documents: Sequence[SkillDocument], skills: Sequence[Analysed]) -> None:
        """Write the analyses and vectors that the file does not have yet."""
        rows = []
        for document, found in zip(documents, skills, strict=True):
            vector = meaning.known(found.said)
            if self._written.get(document.digest) not in (True, vector is not None):
                rows.append((document.digest, ANALYSIS, dumped(found), vector))
        if rows:
            self._use(lambda file: self._write(file, rows))

    def _read(self, file: sqlite3.Connection, digests: list[str]) -> None:
        for digest, text, vector in file.execute(_SELECT, (ANALYSIS, json.dumps(digests))):
            found = loaded(text)
            if vector is not None:
                meaning.remember(found.said, vector)
            cache.put(digest, found)
            self._written[digest] = vector is not None

    def _write(self, file: sqlite3.Connection, rows: list[_Row]) -> None:
        file.execute("DELETE FROM skill WHERE analysis != ?", (ANALYSIS,))
        file.executemany("REPLACE INTO skill VALUES (?, ?, ?, ?)", rows)
        file.execute("DELETE FROM skill WHERE rowid <= (SELECT max(rowid) FROM skill) - ?", (MOST,))
        self._written.update((digest, vector is not None) for digest, *_, vector in rows)

    def _use(self, action: Callable[[sqlite3.Connection], None]) -> None:
        path = self.directory / NAME
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
            with closing(sqlite3.connect(path, timeout=WAIT)) as file, file:
                file.execute("PRAGMA synchronous=OFF")
                file.execute(_TABLE)
                action(file)
        except (OSError, sqlite3.OperationalError) as failure:
            logger.warning("Skills are analysed without %s, which failed: %s", path, failure)
        except (sqlite3.DatabaseError, ValueError, LookupError, TypeError) as failure:
            logger.warning("%s is damaged and is written again: %s", path, failure)
            self._written.clear()
            path.unlink(missing_ok=True)


def check_directory(directory: Path) -> None:
    """Raise `SetupError` if `directory` is missing, or if another account could write in it."""
    try:
        status = directory.stat()
    except OSError as failure:
        raise SetupError(
            f"cache_dir: {directory} cannot be used ({failure.strerror}): create it with mode 0700."
        ) from None
    if not directory.is_dir():
        raise SetupError(f"cache_dir: {directory} is not a directory.")
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise SetupError(
            f"cache_dir: other accounts can write in {directory}. Use a directory of this account "
            "with mode 0700."
        )
