"""The message to the model about changes of its skills since the last run.

It is in the conversation as Vel's own text, but contains text by the authors of packages: their
descriptions are cut, quoted, and stripped of the marks that start or end such a message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from skills_app.library.pinned import PinnedSkill

MAX_NAMED = 30
"""Skills of one kind (new, changed, gone) that are named."""
DESCRIPTION_CHARACTERS = 200
_REPLACED = str.maketrans({"[": "(", "]": ")", "“": "'", "”": "'", '"': "'", "<": "‹", ">": "›"})


def change_note(before: Mapping[str, PinnedSkill], now: Mapping[str, PinnedSkill]) -> str:
    """Return the new, changed and removed skills in one line; empty without changes."""
    new = [f"{name} (“{_quoted(now[name].description)}”)" for name in now if name not in before]
    changed = [
        name
        for name, skill in now.items()
        if name in before and before[name].content_hash != skill.content_hash
    ]
    gone = [name for name in before if name not in now]
    parts = [
        *_part("new", new, "; "),
        *_part("changed, to be read again before use", changed, ", "),
        *_part("gone", gone, ", "),
    ]
    return f"[Vel: the skills have changed. {'. '.join(parts)}.]" if parts else ""


def _part(what: str, items: Sequence[str], separator: str) -> Iterable[str]:
    if items:
        more = f"{separator}and {len(items) - MAX_NAMED} more" if len(items) > MAX_NAMED else ""
        yield f"{what}: {separator.join(items[:MAX_NAMED])}{more}"


def _quoted(text: str) -> str:
    plain = "".join(character if character.isprintable() else " " for character in text)
    line = " ".join(plain.translate(_REPLACED).split())
    if len(line) > DESCRIPTION_CHARACTERS:
        line = f"{line[: DESCRIPTION_CHARACTERS - 1].rstrip()}…"
    return line
