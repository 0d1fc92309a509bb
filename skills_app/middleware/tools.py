"""Skills: a catalogue in the prompt, and tools to load, deactivate and search skills."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pydantic import AliasChoices, BaseModel, Field

from agents.events.append import EventDraft
from agents.middleware.base import Middleware, PromptContext, Tool, ToolResult, error
from agents.middleware.context import ToolContext
from agents.models import Effect
from agents.spec import AgentSpec
from skills_app.actions.pins import note_deactivated, note_loaded
from skills_app.events import SkillDeactivated, SkillLoaded
from skills_app.library.normalise import normalise_name
from skills_app.library.pinned import MOUNT, PinnedSkill, UnmetRequirement, with_requirements
from skills_app.library.search.ranking import SHOWN
from skills_app.options import SkillOptions
from skills_app.queries.index import find_pinned
from skills_app.queries.text import in_quarantine, skill_text
from skills_app.runs.session import RunSkills
from skills_app.settings import SkillSettings

_NAMED_WHEN_MISSING = 30
_FOUND = 10
"""Skills that a search shows."""


class ListSkillsInput(BaseModel):
    query: str = ""


class SkillInput(BaseModel):
    name: str = Field(validation_alias=AliasChoices("name", "skill_name"))


def _named(context: ToolContext, given: str) -> PinnedSkill | None:
    """Return the skill that a model means: it also writes paths and titles."""
    name = given.strip().removesuffix("/SKILL.md").rstrip("/").rpartition("/")[2]
    pinned = context.part(RunSkills).pinned
    return pinned.get(name) or pinned.get(normalise_name(name))


def _missing(context: ToolContext, given: str) -> ToolResult:
    names = sorted(context.part(RunSkills).pinned)
    known = ", ".join(names[:_NAMED_WHEN_MISSING]) or "none"
    more = "; list_skills shows more" if len(names) > _NAMED_WHEN_MISSING else ""
    return error(f"There is no skill {given[:100]!r}. This agent has: {known}{more}.", "not_found")


async def list_skills(context: ToolContext, given: ListSkillsInput) -> ToolResult:
    skills = list(context.part(RunSkills).pinned.values())
    if given.query.strip():
        return await _found(context, given.query, skills)
    return ToolResult(
        [
            {"name": skill.name, "description": skill.description, "tags": list(skill.head.tags)}
            for skill in skills
        ]
    )


async def _found(context: ToolContext, query: str, skills: list[PinnedSkill]) -> ToolResult:
    ranked = await context.in_database(find_pinned, query, skills)
    shown = [
        {"name": skill.name, "description": skill.description, "score": round(score, 2)}
        for skill, score in ranked[:_FOUND]
        if score >= SHOWN
    ]
    if not shown:
        return ToolResult(f"None of your {len(skills)} skills fits {query[:200]!r}.")
    return ToolResult(shown)


async def load_skill(context: ToolContext, given: SkillInput) -> ToolResult:
    skill = _named(context, given.name)
    if skill is None:
        return _missing(context, given.name)
    try:
        loaded = with_requirements(skill.name, context.part(RunSkills).pinned)
    except UnmetRequirement as problem:
        return error(f"{skill.name} cannot be loaded. {problem}", "unmet_requirement")
    if bad := await context.in_database(in_quarantine, loaded):
        message = f"{skill.name} cannot be loaded: {', '.join(bad)} was put in quarantine."
        return error(message, "quarantined")
    in_prompt = context.spec.option(SkillOptions).skill_mode == "system_prompt"
    limit = SkillSettings.now().CONTEXT_BYTES
    text = await context.in_database(partial(skill_text, limit=limit, heads_only=in_prompt), loaded)
    if in_prompt:
        text = f"{text}\n\nThe instructions are in your system prompt from now on."

    def commit() -> None:
        note_loaded(context.run_id, context.thread_id, context.call_id, loaded)
        context.part(RunSkills).activate(loaded)

    return ToolResult(text, events=[_loaded_event(item) for item in loaded], commit=commit)


def _loaded_event(skill: PinnedSkill) -> EventDraft:
    return SkillLoaded(
        name=skill.name,
        version=skill.head.version,
        trust=skill.trust,
        content_hash=skill.content_hash,
    )


async def deactivate_skill(context: ToolContext, given: SkillInput) -> ToolResult:
    skill = _named(context, given.name)
    if skill is None:
        return _missing(context, given.name)
    if skill.name not in context.part(RunSkills).active:
        return error(f"The skill {skill.name} is not active.", "not_active")

    def commit() -> None:
        note_deactivated(context.run_id, context.thread_id, context.call_id, skill)
        context.part(RunSkills).deactivate(skill.name)

    return ToolResult(
        f"The skill {skill.name} is not active any more.",
        events=[SkillDeactivated(name=skill.name)],
        commit=commit,
    )


class SkillsMiddleware(Middleware):
    """The skill tools and the catalogue. Without tools (sandbox_only) skills are read as files."""

    name = "skills"
    profiles = frozenset({"full", "sandbox_only"})

    def tools(self, spec: AgentSpec) -> Sequence[Tool[Any]]:
        if spec.profile != "full":
            return ()
        return (
            Tool(
                "list_skills",
                "List the skills you have, the ones that fit a query first.",
                ListSkillsInput,
                list_skills,
                Effect.READ,
            ),
            Tool(
                "load_skill",
                "Load a skill: its instructions, and the skills it requires.",
                SkillInput,
                load_skill,
                Effect.READ,
                is_whole=True,
                runs_alone=True,
                aliases=("activate_skill",),
            ),
            Tool(
                "deactivate_skill",
                "Put a loaded skill away, when its task is done.",
                SkillInput,
                deactivate_skill,
                Effect.READ,
                runs_alone=True,
            ),
        )

    def prompt(self, context: PromptContext) -> str:
        skills = context.parts.get(RunSkills.label)
        if skills is None or not skills.pinned:
            return ""
        runs = context.runs_commands
        if "load_skill" in context.tool_names:
            how = "load it with load_skill before you begin"
        else:
            reader = "cat" if runs else "read_file"
            how = f"read it before you begin ({reader} {MOUNT}/<name>/SKILL.md)"
        more = "list_skills" if "list_skills" in context.tool_names else f"ls {MOUNT}"
        text = (
            f"## Skills\nSkills are instructions for kinds of tasks. When one fits, {how}, follow "
            "it, and begin your answer with [Using skill: name]. "
            f"{'Prefer its scripts to new code; its' if runs else 'Its'} files are in "
            f"{MOUNT}/<name>/.\n"
            + catalogue(skills.pinned, SkillSettings.now().CATALOGUE_BYTES, more)
        )
        for active in skills.active:
            text += f"\n\n{active.text}"
        return text


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
