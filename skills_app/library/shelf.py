"""The tools for skills and their segment of the prompt, over any set of skills.

The skills of a run are in the database (`skills_app.runs.session`), those of a component in memory
(`skills_app.component`). Both use these functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import AliasChoices, BaseModel, Field

from skills_app.library.normalise import normalise_name
from skills_app.library.package import SKILL_FILE
from skills_app.library.pinned import (
    MOUNT,
    PinnedSkill,
    UnmetRequirement,
    requiring,
    with_requirements,
)
from skills_app.library.search.ranking import SHOWN

COMMANDS = frozenset({"execute", "execute_python", "execute_in_sandbox"})
"""Tools that run commands. A skill that requires one of them works with any of them."""
_NAMED_WHEN_MISSING = 30
_FOUND = 10
"""The number of skills that a search shows."""
_FILES_NAMED = 60

LIST = "List your skills, those that fit a query first."
LOAD = "Load a skill: its instructions, and the skills it requires."
DEACTIVATE = "Deactivate a skill when its task is done."
"""Descriptions of the tools."""


class ListSkillsInput(BaseModel):
    query: str = ""


class SkillInput(BaseModel):
    name: str = Field(validation_alias=AliasChoices("name", "skill_name"))


class ShelfError(Exception):
    """A call of a tool is impossible. The message is for the model; `code` is a stable word."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class Shelf:
    """The skills that an agent can load, by name, and the active ones in order of activation."""

    pinned: Mapping[str, PinnedSkill]
    active: Mapping[str, PinnedSkill]
    runs_commands: bool = True
    """Whether the agent has a tool that runs commands."""

    def ranked(self, query: str) -> list[tuple[PinnedSkill, float]]:
        """Return pairs (skill, score from 0 to 1) for `query`, best first."""
        raise NotImplementedError

    def text(self, skills: Sequence[PinnedSkill], *, heads_only: bool) -> str:
        """Return the instructions of `skills` for the model.

        With `heads_only`, only their titles and files, because the prompt has the instructions.
        """
        raise NotImplementedError

    def withheld(self, skills: Sequence[PinnedSkill]) -> list[str]:
        """Return the names of the skills in `skills` that must not be loaded now."""
        return []

    def listed(self, query: str = "") -> list[dict[str, Any]] | str:
        """Return all skills, or those that fit `query`; a message for the model if none fits."""
        if query.strip():
            return self._found(query)
        return [
            {
                "name": skill.name,
                "description": skill.description,
                "tags": list(skill.head.tags),
                **self._lacking(skill),
            }
            for skill in self.pinned.values()
        ]

    def _found(self, query: str) -> list[dict[str, Any]] | str:
        shown = [
            {
                "name": skill.name,
                "description": skill.description,
                "score": round(score, 2),
                **self._lacking(skill),
            }
            for skill, score in self.ranked(query)[:_FOUND]
            if score >= SHOWN
        ]
        return shown or f"Your {len(self.pinned)} skills do not fit {query[:200]!r}."

    def _lacking(self, skill: PinnedSkill) -> dict[str, list[str]]:
        missing = self.missing_tools(skill)
        return {"missing_tools": missing} if missing else {}

    def missing_tools(self, skill: PinnedSkill) -> list[str]:
        """Return the tools for running commands that the skill requires and the agent lacks."""
        return [] if self.runs_commands else sorted(COMMANDS & {*skill.head.tools_required})

    def named(self, given: str) -> PinnedSkill:
        """Return the skill that `given` means. Models also write paths and titles.

        Raises `ShelfError` if there is none.
        """
        name = given.strip().removesuffix(f"/{SKILL_FILE}").rstrip("/").rpartition("/")[2]
        found = self.pinned.get(name) or self.pinned.get(normalise_name(name))
        if found is None:
            names = sorted(self.pinned)
            known = ", ".join(names[:_NAMED_WHEN_MISSING]) or "none"
            more = "; list_skills shows more" if len(names) > _NAMED_WHEN_MISSING else ""
            message = f"There is no skill {given[:100]!r}. This agent has: {known}{more}."
            raise ShelfError(message, "not_found")
        return found

    def to_load(self, given: str) -> list[PinnedSkill]:
        """Return the skill called `given`, preceded by the skills that it requires.

        Raises `ShelfError`.
        """
        skill = self.named(given)
        try:
            return with_requirements(skill.name, self.pinned)
        except UnmetRequirement as problem:
            message = f"{skill.name} cannot be loaded. {problem}"
            raise ShelfError(message, "unmet_requirement") from None

    def loaded(self, skills: Sequence[PinnedSkill], *, in_prompt: bool) -> str:
        """Return the tool result for loading `skills`.

        `in_prompt` says that the system prompt has their instructions. Raises `ShelfError` if one
        is in quarantine.
        """
        if bad := self.withheld(skills):
            message = f"{skills[-1].name} cannot be loaded: {', '.join(bad)} was put in quarantine."
            raise ShelfError(message, "quarantined")
        text = self.text(skills, heads_only=in_prompt)
        missing = sorted({name for skill in skills for name in self.missing_tools(skill)})
        if missing:
            text += (
                f"\n\nIt requires {', '.join(missing)}, which you do not have: its scripts cannot "
                "run here. Use its instructions without them."
            )
        if in_prompt:
            text += "\n\nThe instructions are in your system prompt from now on."
        return text

    def to_deactivate(self, given: str) -> PinnedSkill:
        """Return the active skill called `given`.

        Raises `ShelfError` if it is not active, or if an active skill requires it.
        """
        skill = self.named(given)
        if skill.name not in self.active:
            raise ShelfError(f"The skill {skill.name} is not active.", "not_active")
        required = {name: one.head.requires for name, one in self.active.items()}
        if names := requiring(skill.name, required):
            others = ", ".join(names)
            message = f"{skill.name} is required by {others}: deactivate {others} first."
            raise ShelfError(message, "required")
        return skill


def deactivated(skill: PinnedSkill) -> str:
    """Return the tool result for deactivating a skill."""
    return f"The skill {skill.name} is no longer active."


def segment(
    pinned: Sequence[PinnedSkill],
    active: Sequence[str],
    tools: frozenset[str],
    budget: int,
    *,
    runs: bool,
) -> str:
    """Return the segment of the system prompt about skills, "" without skills.

    `active` are the instructions of active skills that belong in it. `budget` is the limit for the
    catalogue in bytes. `runs` says whether the agent can run commands.
    """
    if not pinned:
        return ""
    if "load_skill" in tools:
        how = "load it with load_skill before you start"
    else:
        reader = "cat" if runs else "read_file"
        how = f"read it before you start ({reader} {MOUNT}/<name>/{SKILL_FILE})"
    more = "list_skills" if "list_skills" in tools else f"ls {MOUNT}"
    usable = [skill for skill in pinned if _can_run(skill, runs)]
    others = sorted(skill.name for skill in pinned if not _can_run(skill, runs))
    files = "Prefer its scripts to new code; its" if runs else "Its"
    text = (
        f"## Skills\nSkills are instructions for kinds of tasks. When one fits, {how}, follow "
        "it, and start your answer with [Using skill: name]. "
        f"{files} files are in {MOUNT}/<name>/.\n" + catalogue(usable, budget, more)
    )
    if others:
        names = ", ".join(others[:_NAMED_WHEN_MISSING])
        left = len(others) - _NAMED_WHEN_MISSING
        names += f" and {left} more" if left > 0 else ""
        text = f"{text.rstrip()}\nTheir scripts cannot run here: {names}."
    return "\n\n".join([text, *active])


def _can_run(skill: PinnedSkill, runs: bool) -> bool:
    return runs or COMMANDS.isdisjoint(skill.head.tools_required)


_LENGTHS = (1024, 400, 200, 100, 50, 0)
"""The lengths of descriptions in characters that are tried until all skills fit."""


def catalogue(skills: Sequence[PinnedSkill], budget: int, more: str) -> str:
    """Return one line for each skill, by priority, then by name.

    The result has at most `budget` bytes: first all descriptions become shorter, then skills are
    omitted and their number is added, with `more`, the way to find them.
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


class Instructions:
    """The instructions of loaded skills for the model, together about `limit` bytes.

    Each text has the title, the list of files and the body. A shortened text names the path of the
    complete one. When no room is left, a text has only the title and this path.
    """

    def __init__(self, limit: int, *, heads_only: bool = False) -> None:
        self.room = limit
        self.heads_only = heads_only

    def of(self, skill: PinnedSkill, body: str, files: Sequence[str], directory: str | None) -> str:
        """Return the instructions of the next skill. `files` are its other files in `directory`."""
        text = _title(skill)
        if self.room > 0 and files and directory:
            more = f" and {len(files) - _FILES_NAMED} more" if len(files) > _FILES_NAMED else ""
            text += f"\nFiles in {directory}/: {', '.join(files[:_FILES_NAMED])}{more}"
        self.room -= len(text.encode())
        if self.heads_only:
            return text
        data = body.strip().encode("utf-8", "replace")
        displayed = data[: max(self.room, 0)].decode(errors="ignore")
        cut = f"\n\n[cut; the whole is in {directory}/{SKILL_FILE}]" if directory else "\n\n[cut]"
        self.room -= len(data)
        return f"{text}\n\n{displayed}{cut if len(displayed.encode()) < len(data) else ''}"


def _title(skill: PinnedSkill) -> str:
    version = f" {' '.join(skill.head.version.split())[:40]}" if skill.head.version else ""
    trust = ", not reviewed" if skill.trust == "imported" else ""
    return f"# Skill: {skill.name}{version} ({skill.trust}{trust})"
