"""The skills of a run while a worker executes it: the pinned and the active ones.

The start of a run updates the rows of skills in directories. Each package is a separate
transaction: the first reading of a thousand packages takes seconds, and other runs of this process
write their rows in between.
"""

from __future__ import annotations

import json
import logging
import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from agents.middleware.context import SubagentError
from agents.middleware.run_parts import (
    Beginning,
    FinishedCall,
    Inherited,
    Known,
    Read,
    RunPart,
)
from agents.models import Run
from agents.policy import Verdict
from agents.spec import AgentSpec, SubagentSpec
from sandbox.errors import SandboxSetupError
from skills_app.actions.pins import note_files, pin_for_child, pin_skills
from skills_app.actions.sets import set_of, skills_in
from skills_app.actions.sync import (
    Changes,
    SourceRead,
    changes_of,
    package_of,
    quarantine_problems,
    read_source,
    read_sources,
    remove_gone,
    store_found,
    usable_directories,
)
from skills_app.actions.versions import version_files
from skills_app.library.allowed_tools import narrows_to
from skills_app.library.package import SKILL_FILE
from skills_app.library.pinned import PinnedSkill, UnmetRequirement, by_name, with_requirements
from skills_app.library.problems import SkillChanged, error
from skills_app.library.shelf import COMMANDS, Shelf
from skills_app.library.store.store import unpacked
from skills_app.models import ActiveSkill, Trust
from skills_app.options import SkillOptions
from skills_app.queries.index import find_pinned
from skills_app.queries.text import in_quarantine, skill_text, skill_texts
from skills_app.settings import SkillSettings


@dataclass(frozen=True, slots=True)
class PromptSkill:
    """An active skill and its instructions."""

    skill: PinnedSkill
    text: str


@dataclass(frozen=True, slots=True)
class PromptSkills:
    """The skills that the system prompt contains."""

    pinned: Sequence[PinnedSkill] = ()
    active: Sequence[PromptSkill] = ()
    """The skills whose instructions are in the prompt, if `skill_mode` is system_prompt."""


class RunSkills(RunPart, Shelf):
    """The skills of a run.

    `pinned` are all skills that it may load. `active` are those loaded and not deactivated, in the
    order of loading.
    """

    label: ClassVar[str] = "skills"
    area: ClassVar[str] = "skills"

    def __init__(
        self,
        set_id: str | None,
        pinned: dict[str, PinnedSkill],
        active: dict[str, PinnedSkill] | None = None,
        *,
        in_prompt: bool = False,
        runs_commands: bool = True,
    ) -> None:
        self.set_id = set_id
        self.pinned: dict[str, PinnedSkill] = pinned
        self.active: dict[str, PinnedSkill] = active or {}
        self.runs_commands = runs_commands
        self._in_prompt = in_prompt

    @classmethod
    async def prepare(cls, worker: Any, run: Run, spec: AgentSpec) -> Any:
        return await synced_sources(worker, run, spec)

    @classmethod
    def begin(cls, run: Run, spec: AgentSpec, prepared: Any) -> Beginning:
        return pin_skills(run, spec, prepared or [])

    @classmethod
    def load(cls, run: Run, spec: AgentSpec) -> RunSkills:
        """Return the skills of `run`, except those that were quarantined since its start."""
        set_id = set_of(run)
        pinned = by_name(skill for skill in skills_in(set_id) if skill.trust != Trust.QUARANTINED)
        names = ActiveSkill.objects.filter(thread_id=run.thread_id).order_by("pk")
        active = {
            name: pinned[name] for name in names.values_list("name", flat=True) if name in pinned
        }
        in_prompt = spec.option(SkillOptions).skill_mode == "system_prompt"
        runs_commands = spec.sandbox and (not spec.tools or not COMMANDS.isdisjoint(spec.tools))
        return cls(set_id, pinned, active, in_prompt=in_prompt, runs_commands=runs_commands)

    def ranked(self, query: str) -> list[tuple[PinnedSkill, float]]:
        return find_pinned(query, list(self.pinned.values()))

    def text(self, skills: Sequence[PinnedSkill], *, heads_only: bool) -> str:
        limit = SkillSettings.now().CONTEXT_BYTES
        return skill_text(skills, limit=limit, heads_only=heads_only)

    def withheld(self, skills: Sequence[PinnedSkill]) -> list[str]:
        return in_quarantine(skills)

    def activate(self, skills: Sequence[PinnedSkill]) -> None:
        for skill in skills:
            if skill.name not in self.active:
                self.active[skill.name] = skill
                self.prompt_is_old = self._in_prompt

    def deactivate(self, name: str) -> None:
        if self.active.pop(name, None) is not None:
            self.prompt_is_old = self._in_prompt

    def prompt_key(self) -> Any:
        if not self._in_prompt:
            return None
        return [skill.version_id for skill in self.active.values()]

    def prompt_content(self) -> PromptSkills:
        """Return the skills for the prompt, with the instructions of the active ones.

        All instructions together have the size limit of one skill, because every request contains
        the prompt.
        """
        skills = list(self.active.values()) if self._in_prompt else []
        texts = skill_texts(skills, limit=SkillSettings.now().CONTEXT_BYTES) if skills else []
        active = [PromptSkill(skill, text) for skill, text in zip(skills, texts, strict=True)]
        return PromptSkills(list(self.pinned.values()), active)

    def must_be_told(self) -> bool:
        return bool(self.pinned)

    def refusal(self, tool: str, tools: Sequence[str], known: Known) -> Verdict | None:
        """Return the refusal of `tool` if an active skill does not allow it, else None."""
        for skill in self.active.values():
            left = narrows_to(skill.head.allowed_tools, known())
            if left is not None and tool not in left:
                names = ", ".join(name for name in tools if name in left)
                reason = f"While the skill {skill.name} is active, use only {names}."
                if "deactivate_skill" in tools:
                    reason += " Deactivate it with deactivate_skill when its task is done."
                return Verdict("deny", f"skill {skill.name}", reason)
        return None

    def tools_left(self, known: Known) -> frozenset[str] | None:
        """Return the tools that all active skills allow; None if no skill limits the tools."""
        left: frozenset[str] | None = None
        for skill in self.active.values():
            narrowed = narrows_to(skill.head.allowed_tools, known())
            if narrowed is not None:
                left = frozenset(narrowed) if left is None else left & narrowed
        return left

    def finished(self, call: FinishedCall) -> Callable[[], None] | None:
        """Return a function that records the files of skills that the call has used, or None.

        If the agent has no tool to load skills, reading a SKILL.md makes the skill active.
        """
        found = files_of(self.pinned, call)
        if not found:
            return None
        note, activates = note_of(found, call)

        def commit() -> None:
            note()
            self.activate(activates)

        return commit

    def directory(self, read: Read) -> Path | None:
        """Return the directory of the run's unpacked skills on this host, None without skills."""
        if not self.pinned:
            return None
        try:
            return unpacked(list(self.pinned.values()), partial(read, version_files))
        except (OSError, ValueError) as error:
            store = SkillSettings.now().store_directory
            raise SandboxSetupError(
                f"The skills could not be unpacked in {store}: {error}"
            ) from error

    def for_child(self, subagent: SubagentSpec) -> Inherited:
        """Return the pinned set or the loaded skills that the run of a subagent inherits.

        Raises:
            SubagentError: A skill or one that it requires is missing or in quarantine, or skills
                require each other in a circle.
        """
        if not subagent.skills:
            return Inherited(partial(pin_for_child, self.set_id, []))
        loaded: dict[str, PinnedSkill] = {}
        for name in subagent.skills:
            if name not in self.pinned:
                raise SubagentError(
                    f"The subagent {subagent.name} needs the skill {name}, which this agent "
                    "does not have: its operator must add it."
                )
            try:
                required = with_requirements(name, self.pinned)
            except UnmetRequirement as problem:
                raise SubagentError(str(problem)) from None
            loaded |= {skill.name: skill for skill in required}
        skills = list(loaded.values())
        if bad := in_quarantine(skills):
            raise SubagentError(f"In quarantine: {', '.join(bad)}.")
        note = skill_text(skills, limit=SkillSettings.now().CONTEXT_BYTES)
        return Inherited(partial(pin_for_child, None, skills), note)

    def reminder(self) -> str:
        if not self.active or self._in_prompt:
            return ""
        names = ", ".join(self.active)
        return f"## Loaded skills\n{names}: load one again when you need its instructions."


_PATH = re.compile(
    r"(?:^|[\s'\"`;|&<>()=,:\[{])(?:/sandbox)?/skills/([^\s'\"`;|&<>(){}\[\],\x00-\x1f\x7f]+)"
)
_TOOLS = frozenset({"read_file", "execute", "execute_python", "execute_in_sandbox"})
_MAX_PATHS = 20
MAX_PATH = 500


Found = Sequence[tuple[PinnedSkill, str]]


def files_of(skills: dict[str, PinnedSkill], call: FinishedCall) -> Found:
    """Return pairs (skill, path) of the files in `skills` that the call has read or run."""
    if call.is_error or call.tool not in _TOOLS or not skills:
        return ()
    return list(dict.fromkeys(_files(skills, call.raw_input)))


def note_of(found: Found, call: FinishedCall) -> tuple[Callable[[], None], Sequence[PinnedSkill]]:
    """Return (the function that records the files, the skills that become active).

    Call the function in the transaction of the tool call. It records at most 20 files.
    """
    opened = [skill for skill, path in found if path == SKILL_FILE]
    activates = opened if "load_skill" not in call.tools else []
    return (
        partial(
            note_files, call.run_id, call.thread_id, call.call_id, found[:_MAX_PATHS], activates
        ),
        activates,
    )


def _files(skills: dict[str, PinnedSkill], raw_input: str) -> Iterator[tuple[PinnedSkill, str]]:
    """Yield (skill, path in it) for each path in the input, in time linear in the input."""
    for value in json.loads(raw_input).values():
        if not isinstance(value, str):
            continue
        for found in _PATH.findall(value):
            name, _, path = posixpath.normpath(found).partition("/")
            path = path.rstrip(".:")
            if name in skills and path and path.isprintable() and len(path) <= MAX_PATH:
                yield skills[name], path


logger = logging.getLogger(__name__)

PASSES = 5
"""The number of attempts to read a directory that changes or that other processes store."""


async def synced_sources(worker: Any, run: Run, spec: AgentSpec) -> list[SourceRead]:
    """Update the rows of the run's directories of skills, and return their contents."""
    directories, refused = usable_directories(run)
    built_in = spec.option(SkillOptions).builtin_skills
    reads = await worker.in_thread(partial(read_sources, directories, built_in=built_in))
    found = [await _synced(worker, read) for read in reads]
    found += refused
    for read in found:
        for path, problems in read.problems.items():
            logger.warning(
                "skills left out: %s %s: %s",
                read.scope,
                path,
                " ".join(str(problem) for problem in problems)[:1000],
                extra={"run_id": run.pk},
            )
    return found


async def _synced(worker: Any, read: SourceRead) -> SourceRead:
    for _ in range(PASSES):
        changes: Changes = await worker.database.run(changes_of, read)
        if not changes:
            if not changes.quarantined:
                return read
            return replace(read, problems={**read.problems, **quarantine_problems(changes)})
        if not await _store(worker, read.scope, changes):
            read = await worker.in_thread(read_source, read.scope)
    changes = await worker.database.run(changes_of, read)
    late = {
        found.path or ".": [error("changing", "It keeps changing: the next run reads it.")]
        for found in changes.packages
    }
    kept = tuple(found for found in read.packages if found not in changes.packages)
    problems = {**read.problems, **late, **quarantine_problems(changes)}
    return SourceRead(read.scope, kept, problems)


async def _store(worker: Any, scope: str, changes: Changes) -> bool:
    """Store `changes`. Return False if a package has changed since it was read."""
    as_read = True
    for found in changes.packages:
        package = await worker.in_thread(package_of, scope, found)
        if package is None:
            as_read = False
            continue
        try:
            await worker.database.run(store_found, scope, package)
        except SkillChanged:
            continue  # another process stored it at this moment: the next reading shows it
    if changes.gone:
        try:
            await worker.database.run(remove_gone, scope, changes.gone)
        except SkillChanged:
            pass  # see above
    return as_read
