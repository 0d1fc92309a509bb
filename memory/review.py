"""Reviews of memory edits: the content before and after, for the approver."""

from __future__ import annotations

from collections.abc import Sequence

from agents.review.diff import diff_section
from agents.review.parts import Finding, Note, Review, one_line, worst

_TITLE_PATH = 160
_VERBS = {"write": "Write", "append": "Append to", "delete": "Delete"}


def memory_edit_review(
    path: str,
    operation: str,
    current: str | None,
    proposed: str | None,
    findings: Sequence[Finding] = (),
    warnings: Sequence[str] = (),
    *,
    is_personal: bool = False,
) -> Review:
    """Return the review of `operation` on the memory file `path`.

    Operations other than write, append and delete appear under their own names.

    Args:
        current: The content now; None if there is no file.
        proposed: The whole file after the change, for `append` too; None for `delete`.
        findings: The scanner's findings in `proposed`.
        warnings: Sentences for the approver.
        is_personal: Whether the file belongs to the reader alone.
    """
    verb = _verb(operation)
    notes = [Note("Only you see this request and the file.")] if is_personal else []
    notes += [Note(one_line(warning), "warning") for warning in warnings]
    if operation == "append" and not (proposed or "").startswith(current or ""):
        notes.append(Note("This changes existing content, although it is called append.", "danger"))
    if grave := worst(findings):
        count = len(findings)
        places = "place" if count == 1 else "places"
        notes.append(Note(f"The scanner marked {count} {places} in the new content.", grave))
    section = diff_section(path, current, proposed, findings=findings)
    return Review(f"{verb} memory: {one_line(path, _TITLE_PATH)}", (section,), tuple(notes))


def purged_review(path: str, operation: str) -> Review:
    """Return the review of an edit whose texts were erased: a note says so."""
    note = Note("The texts of this change were purged and cannot be shown.")
    return Review(f"{_verb(operation)} memory: {one_line(path, _TITLE_PATH)}", (), (note,))


def _verb(operation: str) -> str:
    return _VERBS.get(operation, f"{one_line(operation, 40).capitalize()}:")
