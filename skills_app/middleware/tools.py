"""Skills: a catalogue in the prompt, and tools to load, deactivate and search skills."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from agents.events.append import EventDraft
from agents.middleware.base import Middleware, PromptContext, Tool, ToolResult, error
from agents.middleware.context import ToolContext
from agents.models import Effect
from agents.spec import AgentSpec
from skills_app.actions.pins import note_deactivated, note_loaded
from skills_app.events import SkillDeactivated, SkillLoaded
from skills_app.library.pinned import PinnedSkill
from skills_app.library.shelf import (
    COMMANDS,
    DEACTIVATE,
    LIST,
    LOAD,
    ListSkillsInput,
    ShelfError,
    SkillInput,
    deactivated,
    segment,
)
from skills_app.options import SkillOptions
from skills_app.runs.session import RunSkills
from skills_app.settings import SkillSettings


async def list_skills(context: ToolContext, given: ListSkillsInput) -> ToolResult:
    return ToolResult(await context.in_database(context.part(RunSkills).listed, given.query))


async def load_skill(context: ToolContext, given: SkillInput) -> ToolResult:
    shelf = context.part(RunSkills)
    in_prompt = context.spec.option(SkillOptions).skill_mode == "system_prompt"
    try:
        skills = shelf.to_load(given.name)
        text = await context.in_database(partial(shelf.loaded, in_prompt=in_prompt), skills)
    except ShelfError as problem:
        return error(str(problem), problem.code)

    def commit() -> None:
        note_loaded(context.run_id, context.thread_id, context.call_id, skills)
        shelf.activate(skills)

    return ToolResult(text, events=[_loaded_event(item) for item in skills], commit=commit)


def _loaded_event(skill: PinnedSkill) -> EventDraft:
    return SkillLoaded(
        name=skill.name,
        version=skill.head.version,
        trust=skill.trust,
        content_hash=skill.content_hash,
    )


async def deactivate_skill(context: ToolContext, given: SkillInput) -> ToolResult:
    shelf = context.part(RunSkills)
    try:
        skill = shelf.to_deactivate(given.name)
    except ShelfError as problem:
        return error(str(problem), problem.code)

    def commit() -> None:
        note_deactivated(context.run_id, context.thread_id, context.call_id, skill)
        shelf.deactivate(skill.name)

    return ToolResult(deactivated(skill), events=[SkillDeactivated(name=skill.name)], commit=commit)


class SkillsMiddleware(Middleware):
    """The tools for skills and the catalogue in the prompt.

    Without these tools (sandbox_only), agents read skills as files.
    """

    name = "skills"
    profiles = frozenset({"full", "sandbox_only"})

    def tools(self, spec: AgentSpec) -> Sequence[Tool[Any]]:
        if spec.profile != "full":
            return ()
        return (
            Tool(
                "list_skills",
                LIST,
                ListSkillsInput,
                list_skills,
                Effect.READ,
            ),
            Tool(
                "load_skill",
                LOAD,
                SkillInput,
                load_skill,
                Effect.READ,
                is_whole=True,
                runs_alone=True,
                aliases=("activate_skill",),
            ),
            Tool(
                "deactivate_skill",
                DEACTIVATE,
                SkillInput,
                deactivate_skill,
                Effect.READ,
                runs_alone=True,
            ),
        )

    def prompt(self, context: PromptContext) -> str:
        skills = context.parts.get(RunSkills.label)
        if skills is None:
            return ""
        texts = [active.text for active in skills.active]
        budget = SkillSettings.now().CATALOGUE_BYTES
        runs = not COMMANDS.isdisjoint(context.tool_names)
        return segment(skills.pinned, texts, context.tool_names, budget, runs=runs)
