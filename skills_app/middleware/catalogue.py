"""The names and descriptions of skills within a budget of bytes. Omitted ones are counted."""

from __future__ import annotations

from collections.abc import Sequence

from skills_app.library.pinned import PinnedSkill

_LENGTHS = (1024, 400, 200, 100, 50, 0)
"""Characters of a description, tried one after another until all fit."""


def catalogue(skills: Sequence[PinnedSkill], budget: int, more: str) -> str:
    """Return one line a skill, by priority, then name. `more` is how to find the others.

    If the budget is too small, first all descriptions become shorter, then names are omitted and
    counted.
    """
    ordered = sorted(skills, key=lambda skill: (-skill.head.priority, skill.name))
    for length in _LENGTHS:
        lines = [_line(skill, length) for skill in ordered]
        if _size(lines) <= budget:
            return "\n".join(lines)
    names: list[str] = []
    room = budget - 60
    for skill in ordered:
        room -= len(skill.name.encode()) + 3
        if room < 0:
            break
        names.append(f"- {skill.name}")
    return "\n".join([*names, f"- and {len(ordered) - len(names)} more: {more} shows them"])


def _line(skill: PinnedSkill, length: int) -> str:
    description = " ".join(skill.description.split())
    if len(description) > length:
        description = f"{description[: max(length - 1, 0)].rstrip()}…" if length else ""
    return f"- {skill.name}: {description}" if description else f"- {skill.name}"


def _size(lines: Sequence[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)
