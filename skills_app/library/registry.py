"""Find, choose and activate skills from directories in a script, without a database.

from skills_app.library.registry import SkillRegistry

registry = SkillRegistry(skill_dirs=["./skills"])
skill = registry.find_skill("who has to approve a purchase of 12,000?")
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any, TypedDict

from agents.kernel.lazy_modules import lazy_modules
from sandbox.errors import SetupError
from skills_app.library.normalise import normalise_name
from skills_app.library.pinned import UnmetRequirement, in_order, requiring
from skills_app.library.problems import InvalidSkill, Problem, Severity, error
from skills_app.library.search.document import SkillDocument
from skills_app.library.search.ranking import FIRST, SHOWN, Match, rank
from skills_app.library.search.tokens import fold
from skills_app.library.search.triggers import Message, matching
from skills_app.library.skill import Skill, load_skill, load_skills

with lazy_modules:
    # SQLite: only for a registry with a cache.
    from skills_app.library.search import kept

logger = logging.getLogger(__name__)

BUILT_IN = Path(__file__).parents[1] / "builtin"
THRESHOLD = 0.2
"""Below this score, a match is most likely chance."""


class Listed(TypedDict):
    name: str
    description: str
    tags: list[str]
    enabled: bool


Skills = list[Skill]


class SkillRegistry:
    """Find, choose and activate skills by name.

    A skill from a directory replaces a built-in one with the same name. If two directories have a
    skill with the same name, the first one is used. `register` replaces any skill. `problems` has
    the reasons why skills were not loaded, and warnings for values that are not used as written. A
    skill with `enabled: false` is listed, but not found, suggested or activated.

    Args:
        skill_dirs: Directories of skills. The first one has priority.
        include_builtin: Whether the skills of Vel are included.
        cache_dir: An existing directory, mode 0700, where a search over more than 40 skills keeps
            what it knows about them, so that the first search of a later process is faster.

    >>> registry = SkillRegistry()
    >>> registry.get("Reporting").name
    'reporting'
    >>> registry.activate("reporting"), [skill.name for skill in registry.get_active()]
    (True, ['reporting'])
    """

    def __init__(
        self,
        skill_dirs: Iterable[str | Path] | None = None,
        include_builtin: bool = True,
        cache_dir: str | Path | None = None,
    ) -> None:
        if skill_dirs is not None:
            if isinstance(skill_dirs, str | Path) or not isinstance(skill_dirs, Iterable):
                raise SetupError(f"skill_dirs must be a list of directories, got {skill_dirs!r}.")
            skill_dirs = [_directory("skill_dirs", one) for one in skill_dirs]
        if not isinstance(include_builtin, bool):
            raise SetupError(f"include_builtin must be True or False, got {include_builtin!r}.")
        self._kept = None if cache_dir is None else kept.Kept(_directory("cache_dir", cache_dir))
        self.problems: list[Problem] = []
        self._skills: dict[str, Skill] = {}
        self._active: list[str] = []
        self._registered: set[str] = set()
        self._directories = [Path(given) for given in skill_dirs or ()]
        if include_builtin:
            self.load_from_directory(BUILT_IN)
        for directory in skill_dirs or ():
            self.load_from_directory(directory)

    def load_from_directory(self, path: str | Path) -> Skills:
        """Load the skills in the directory `path` and return them.

        `problems` and the log have the reasons for skills that were left out. `problems` also has
        warnings for values that are not used as they were written.
        """
        skills, problems = load_skills(_directory("path", path))
        self.problems += problems
        for problem in problems:
            if problem.severity is Severity.ERROR:
                logger.warning("A skill was left out: %s", problem)
        taken = []
        for skill in skills:
            first = self._skills.get(skill.name)
            if first is not None and not is_built_in(first):
                self.problems.append(_name_taken(skill, first))
            else:
                self._skills[skill.name] = skill
                taken.append(skill)
                if Path(path) not in (BUILT_IN, *self._directories):
                    self._registered.add(skill.name)
        return taken

    @property
    def skills(self) -> dict[str, Skill]:
        """Return all skills by name."""
        return dict(self._skills)

    def register(self, skill: Skill | Mapping[str, Any]) -> None:
        """Add a skill, or replace the skill of the same name.

        Args:
            skill: A `Skill`, or a dictionary with the fields of one.

        Raises:
            InvalidSkill: The name has no letters or digits, or `skill` is neither of these.
            SetupError: A field of the dictionary is wrong. The message names it.
        """
        if isinstance(skill, Mapping):
            skill = _skill_of(skill)
        if not isinstance(skill, Skill):
            raise InvalidSkill(
                f"skill must be a Skill or a dictionary of its fields, got {skill!r:.80}."
            )
        name = normalise_name(skill.name)
        if not name:
            raise InvalidSkill(f"{skill.name!r} is not a name for a skill: use letters and digits.")
        self._skills[name] = skill if name == skill.name else replace(skill, name=name)
        self._registered.add(name)

    def get(self, name: str) -> Skill | None:
        """Return the skill `name`, None if there is none.

        "PDF Processing" finds `pdf-processing`.
        """
        _check_text("name", name)
        return self._skills.get(name) or self._skills.get(normalise_name(name))

    def list_skills(self) -> list[Listed]:
        """Return all skills in the order in which they were loaded."""
        return [
            {
                "name": skill.name,
                "description": skill.description,
                "tags": list(skill.tags),
                "enabled": skill.enabled,
            }
            for skill in self._skills.values()
        ]

    def list(self) -> Skills:
        """Return the same skills as `list_skills`, as `Skill` objects."""
        return [*self._skills.values()]

    get_all = list

    def registered(self) -> Skills:
        """Return the enabled skills that the program added after the registry was created.

        These are the skills of `register`, and of `load_from_directory` for other directories than
        those of the registry.
        """
        return [skill for skill in self._on() if skill.name in self._registered]

    def scores(self, query: str) -> dict[str, float]:
        """Return the score of each enabled skill for `query`, from 0 to 1, best first."""
        return {match.name: match.score for match in self._ranked(query)}

    def search(self, query: str) -> Skills:
        """Return the enabled skills that match `query`, best first.

        An empty query matches all. Skills whose name, description or tag contains the exact query
        are always included.
        """
        _check_text("query", query)
        text = fold(query).strip()
        if not text:
            return self._on()
        found = [
            match.name
            for place, match in enumerate(self._ranked(query))
            if match.score >= SHOWN
            or (match.score > 0 and place < FIRST)
            or _has(self._skills[match.name], text)
        ]
        return [self._skills[name] for name in found]

    def find_skill(self, query: str, threshold: float = THRESHOLD) -> Skill | None:
        """Return the skill that matches `query` best, None if none has the score `threshold`."""
        if not isinstance(threshold, int | float) or isinstance(threshold, bool):
            raise SetupError(f"threshold must be a number, got {threshold!r:.80}.")
        ranked = self._ranked(query)
        if not ranked or ranked[0].score < threshold or not ranked[0].score:
            return None
        return self._skills[ranked[0].name]

    def find_skills_by_tag(self, tag: str) -> Skills:
        """Return the enabled skills with the tag `tag`, in any case."""
        _check_text("tag", tag)
        wanted = tag.strip().casefold()
        return [s for s in self._on() if wanted in (have.strip().casefold() for have in s.tags)]

    def match_triggers(self, text: str) -> Skills:
        """Return the enabled skills with a trigger in `text`, by priority, then by name."""
        _check_text("text", text)
        message = Message.of(text)
        found = [skill for skill in self._on() if matching(skill.triggers, message) is not None]
        return sorted(found, key=lambda skill: (-skill.priority, skill.name))

    def activate(self, name: str) -> bool:
        """Activate a skill and the skills that it requires. Return whether this was possible.

        Returns False, and changes nothing, if one of them is missing or disabled, or if they
        require each other in a circle.
        """
        skill = self.get(name)
        if skill is None or not skill.enabled:
            return False
        try:
            needed = in_order(skill.name, {one.name: one.requires for one in self._on()})
        except UnmetRequirement:
            return False
        self._active += [one for one in needed if one not in self._active]
        return True

    def deactivate(self, name: str) -> bool:
        """Deactivate a skill. Return whether this was possible.

        Returns False, and changes nothing, if the skill is not active or an active skill requires
        it.
        """
        skill = self.get(name)
        if skill is None or skill.name not in self._active:
            return False
        if requiring(skill.name, {one.name: one.requires for one in self.get_active()}):
            return False
        self._active.remove(skill.name)
        return True

    def deactivate_all(self) -> None:
        self._active.clear()

    def get_active(self) -> Skills:
        """Return the active skills, in the order in which they were activated."""
        return [self._skills[name] for name in self._active]

    def _on(self) -> Skills:
        return [skill for skill in self._skills.values() if skill.enabled]

    def _ranked(self, query: str) -> Sequence[Match]:
        _check_text("query", query)
        documents: Sequence[SkillDocument] = [skill.document for skill in self._on()]
        return rank(query, documents, self._kept)


SkillsRegistry = SkillRegistry


def load_skills_from_directory(path: str | Path) -> Skills:
    """Return the skills of `path`, without those that cannot be loaded.

    `SkillRegistry([path]).problems` has the reasons.

    >>> os.makedirs("no-skills", exist_ok=True)
    >>> load_skills_from_directory("no-skills")
    []
    """
    return load_skills(_directory("path", path))[0]


def _skill_of(given: Mapping[str, Any]) -> Skill:
    """Return the skill with the given fields. Raises `SetupError` that names a wrong field."""
    known = {field.name: field.default is MISSING for field in fields(Skill)}
    unknown = [name for name in given if name not in known]
    if unknown:
        raise SetupError(f"skill has no field {unknown[0]!r:.80}. Its fields: {', '.join(known)}.")
    missing = [name for name, required in known.items() if required and name not in given]
    if missing:
        raise SetupError(f"skill: the field {missing[0]!r} is missing.")
    try:
        return Skill(**given)
    except InvalidSkill as problem:
        raise SetupError(f"skill: {problem}") from None


def _directory(argument: str, given: object) -> Path:
    if not isinstance(given, str | Path) or not str(given):
        raise SetupError(f"{argument}: {given!r:.80} is not the path of a directory.")
    return Path(given)


def _check_text(argument: str, given: object) -> None:
    if not isinstance(given, str):
        raise SetupError(f"{argument} must be a text, got {given!r:.80}.")


def _has(skill: Skill, text: str) -> bool:
    return any(text in fold(part) for part in (skill.name, skill.description, *skill.tags))


def is_built_in(skill: Skill) -> bool:
    return skill.path is not None and skill.path.is_relative_to(BUILT_IN)


def _name_taken(skill: Skill, first: Skill) -> Problem:
    keeper = first.path or "a registered skill"
    message = f"The name {skill.name} is taken by {keeper}: rename one of them."
    return error("name_taken", message, str(skill.path or skill.name))


__all__ = [
    "Skill",
    "SkillRegistry",
    "SkillsRegistry",
    "load_skill",
    "load_skills_from_directory",
]
