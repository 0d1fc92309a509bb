"""Renaming of files that a command created with a protected name.

A mount for a name that does not exist would leave an empty file in the user's directory. So a new
file is renamed as soon as it is detected, and again when the command has ended.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Iterable
from pathlib import Path

from sandbox.directories.reopening import CHANGE, LIST, open_directory
from sandbox.own_directory.git_directory import NEVER_NEW
from sandbox.own_directory.names import BLOCKED, GIT, fold
from sandbox.own_directory.rules import FileRules
from sandbox.watch import Watch

CHECK_SECONDS = 0.25
PAUSE = 5
"""The pause after a check is at least this many times as long as the check."""
MOST = 20
"""A command is killed if it creates more files than this that are put aside."""

_ASIDE = re.compile(re.escape(BLOCKED) + r"(-[0-9a-f]{8})?\Z")
_LONGEST = 200
"""The number of bytes of a name that are kept when it gets a new ending."""

Place = tuple[str, str]
"""A directory relative to the top, and a name in it."""


class NewFileWatch(Watch):
    """Renames new files with protected names while a command runs.

    `repositories` are the git directories before the command, relative to `root`.
    """

    def __init__(self, root: Path, rules: FileRules, repositories: Iterable[str]) -> None:
        self._root = root
        self._rules = rules
        self._directories = sorted({"", *repositories})
        self._links: dict[Place, str] = {}
        self._before = self._present()
        self._notes: list[str] = []
        self._failed: set[Place] = set()
        self.due = time.monotonic() + CHECK_SECONDS

    @property
    def known(self) -> list[str]:
        """Return the protected files from before the command, without links."""
        return [_path(place) for place, link in self._before.items() if not link]

    def check(self) -> str | None:
        started = time.monotonic()
        self._put_aside()
        duration = time.monotonic() - started
        self.due = time.monotonic() + max(CHECK_SECONDS, PAUSE * duration)
        if len(self._notes) > MOST:
            return "it creates too many files that programs outside the sandbox run"
        return None

    def last_word(self) -> str | None:
        self._put_aside()
        if not self._notes:
            return None
        return (
            "; ".join(self._notes[: MOST + 1])
            + ". Programs outside the sandbox run such files: ask the user to create them, or to "
            "allow them with --allow-write"
        )

    def _put_aside(self) -> None:
        now = self._present()
        for place, link in now.items():
            if place not in self._before or link != self._before[place]:
                self._rename(place)
        for place, link in self._before.items():
            if link and now.get(place) != link:
                self._restore_link(place, link)

    def _present(self) -> dict[Place, str]:
        """Return the existing protected names, with the target of each link."""
        found: dict[Place, str] = {}
        for directory in self._directories:
            try:
                descriptor = self._open(directory)
            except OSError:
                continue  # removed by the user
            try:
                with os.scandir(descriptor) as entries:
                    for entry in entries:
                        if self._is_protected(directory, entry.name):
                            found[directory, entry.name] = _target(entry.name, descriptor)
            finally:
                os.close(descriptor)
        return found

    def _open(self, directory: str, needs: int = LIST) -> int:
        """Open a directory below the root. Raises OSError if a link is on the way.

        Another command can have put the link there, which leads out of the user's directory.
        """
        parts = [part for part in directory.split("/") if part]
        descriptor = open_directory(self._root, needs=LIST if parts else needs)
        for number, part in enumerate(parts, 1):
            above = descriptor
            try:
                descriptor = open_directory(part, above, needs if number == len(parts) else LIST)
            finally:
                os.close(above)
        return descriptor

    def _is_protected(self, directory: str, name: str) -> bool:
        if _ASIDE.search(name):
            return False  # the name may also match a pattern of the user
        path = _path((directory, name))
        if directory and fold(name) in NEVER_NEW:
            return not self._rules.opens(path)
        # A new repository is legitimate work; the report at the end of the run lists its programs.
        return not directory and fold(name) != GIT and bool(self._rules.why_protected(path))

    def _rename(self, place: Place) -> None:
        directory, name = place
        if place in self._failed:
            return
        shown = _path(place)
        try:
            descriptor = self._open(directory, CHANGE)
            try:
                aside = _free_name(name, descriptor)
                os.rename(name, aside, src_dir_fd=descriptor, dst_dir_fd=descriptor)
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            return  # removed by another process
        except OSError as error:
            self._failed.add(place)
            self._notes.append(f"{shown!r} could not be put aside ({error.strerror})")
            return
        self._notes.append(f"{shown!r} was renamed to {_path((directory, aside))!r}")

    def _restore_link(self, place: Place, link: str) -> None:
        directory, name = place
        if place in self._failed:
            return
        try:
            descriptor = self._open(directory, CHANGE)
            try:
                os.symlink(link, name, dir_fd=descriptor)
                if os.geteuid() == 0:
                    above = os.fstat(descriptor)
                    owner = (above.st_uid, above.st_gid)
                    os.chown(name, *owner, dir_fd=descriptor, follow_symlinks=False)
            finally:
                os.close(descriptor)
        except OSError as error:
            self._failed.add(place)
            self._notes.append(f"the link {name!r} could not be put back ({error.strerror})")
            return
        self._notes.append(f"the link {name!r} was put back")


def _path(place: Place) -> str:
    return "/".join(part for part in place if part)


def _target(name: str, parent: int) -> str:
    try:
        return os.readlink(name, dir_fd=parent)
    except OSError:
        return ""


def _free_name(name: str, parent: int) -> str:
    aside = os.fsdecode(os.fsencode(name)[:_LONGEST]) + BLOCKED
    try:
        os.stat(aside, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return aside
    return f"{aside}-{secrets.token_hex(4)}"
