"""Compare two versions of a skill for people: their files, texts and findings.

Reviewers decide on the basis of a comparison. Therefore it lists and counts files that it does not
show, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from agents.hidden_text import visible
from agents.review.diff import diff_section
from agents.review.parts import Review
from agents.review.room import Room
from skills_app.library.package import SKILL_FILE
from skills_app.models import SkillVersion
from skills_app.queries.packages import PackageEntry, as_text, package_entries, package_file

FILE_CHARACTERS = 200_000
"""The maximum number of characters of a file, before and after together, in a diff."""
ALL_CHARACTERS = 600_000
FILE_LINES = 5_000
ALL_LINES = 15_000

_ASKING = ("description", "triggers", "allowed_tools", "requires", "tools_required")

Status = Literal["added", "removed", "changed"]


@dataclass(frozen=True, slots=True)
class FileChange:
    """The change of one file. `path` is the stored path, and `name` the one to show.

    `mode` says in words whether the file became executable. `review` is its diff. Without a diff,
    `why` is the reason, or "" if only the mode has changed.
    """

    path: str
    name: str
    status: Status
    before: PackageEntry | None
    after: PackageEntry | None
    mode: str = ""
    review: Review | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The changes between two versions.

    `same` is the number of unchanged files, and `unshown` that of files without a diff. `findings`
    are the scan's findings that only the later version has, as JSON. `gone` is the number of those
    that only the earlier version has. `asks_more` are the changed fields of SKILL.md that control
    the use of the skill.
    """

    files: tuple[FileChange, ...]
    same: int
    findings: tuple[dict[str, Any], ...] = ()
    gone: int = 0
    asks_more: tuple[str, ...] = ()

    @property
    def unshown(self) -> int:
        return sum(1 for file in self.files if file.why)

    def count(self, status: Status) -> int:
        return sum(1 for file in self.files if file.status == status)

    @property
    def counts(self) -> dict[str, int]:
        return {
            "added": self.count("added"),
            "changed": self.count("changed"),
            "removed": self.count("removed"),
            "same": self.same,
        }


def compare(before: SkillVersion | None, after: SkillVersion) -> Comparison:
    """Return the changes from `before` to `after`. If `before` is None, everything is new."""
    old = {entry.path: entry for entry in package_entries(before.pk)} if before else {}
    new = {entry.path: entry for entry in package_entries(after.pk)}
    paths = sorted({*old, *new}, key=lambda path: (path != SKILL_FILE, path))
    differ = [path for path in paths if not _same(old.get(path), new.get(path))]
    room = Room(ALL_LINES, ALL_CHARACTERS)
    return Comparison(
        tuple(
            _change(path, old.get(path), new.get(path), before.pk if before else 0, after.pk, room)
            for path in differ
        ),
        len(paths) - len(differ),
        *(_scans(before, after) if before else ()),
    )


def _scans(
    before: SkillVersion, after: SkillVersion
) -> tuple[tuple[dict[str, Any], ...], int, tuple[str, ...]]:
    """Return (new findings, number of gone ones, changed fields that control the skill's use)."""
    old, new = _by_meaning(before.findings), _by_meaning(after.findings)
    return (
        tuple(finding for key, finding in new.items() if key not in old),
        sum(1 for key in old if key not in new),
        tuple(name for name in _ASKING if before.head.get(name) != after.head.get(name)),
    )


def _by_meaning(findings: list[dict[str, Any]]) -> dict[tuple[str, ...], dict[str, Any]]:
    """Return the findings by their content. The line is ignored, because text above may move it."""
    names = ("severity", "code", "path", "message", "excerpt")
    return {tuple(str(found.get(name)) for name in names): found for found in findings}


def _same(before: PackageEntry | None, after: PackageEntry | None) -> bool:
    return (
        before is not None
        and after is not None
        and (before.sha256, before.executable) == (after.sha256, after.executable)
    )


def _change(
    path: str,
    before: PackageEntry | None,
    after: PackageEntry | None,
    old_id: int,
    new_id: int,
    room: Room,
) -> FileChange:
    status: Status = "added" if before is None else "removed" if after is None else "changed"
    name = visible(path)
    mode = ""
    if after is not None and after.executable and not (before and before.executable):
        mode = "becomes executable" if before else "executable"
    elif before is not None and after is not None and before.executable and not after.executable:
        mode = "is no longer executable"
    if before is not None and after is not None and before.sha256 == after.sha256:
        return FileChange(path, name, status, before, after, mode)
    size = sum(entry.size_bytes for entry in (before, after) if entry)
    # A character has at most four bytes, so longer files exceed the limit in any case.
    if size > 4 * FILE_CHARACTERS:
        why = f"{size:,} bytes are too long to be shown here"
        return FileChange(path, name, status, before, after, mode, why=why)
    old = _text(old_id, path) if before else None
    new = _text(new_id, path) if after else None
    if (before and old is None) or (after and new is None):
        why = "it is not text (UTF-8)"
        return FileChange(path, name, status, before, after, mode, why=why)
    both = (old or "") + "\n" + (new or "")
    why = _no_room(len(both), both.count("\n"), room)
    review = None if why else Review("", (diff_section(path, old, new),))
    return FileChange(path, name, status, before, after, mode, review, why)


def _no_room(characters: int, lines: int, room: Room) -> str:
    """Return why a text is too long for the page; "" after reserving room for it."""
    if characters > FILE_CHARACTERS or lines > FILE_LINES:
        return f"{characters:,} characters in {lines:,} lines are too long to be shown here"
    return "" if room.take(characters, lines) else "the limit of this page is reached"


def _text(version_id: int, path: str) -> str | None:
    data = package_file(version_id, path)
    return None if data is None else as_text(data)
