"""Offer the skills of a registry to the tools for skills and to the agents of a program."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from agents.settings import DataSettings
from skills_app.library.export import export_files, head_text, write_folder
from skills_app.library.package import SKILL_FILE, PackageFile, hash_files
from skills_app.library.pinned import PinnedSkill
from skills_app.library.problems import InvalidSkill
from skills_app.library.read import read_package, refused
from skills_app.library.registry import SkillRegistry, is_built_in
from skills_app.library.shelf import Instructions, Shelf
from skills_app.library.skill import Skill
from skills_app.library.sources.folder import read_folder
from skills_app.settings import SkillSettings


class RegistryShelf(Shelf):
    """The enabled skills of a registry, for the tools for skills."""

    def __init__(self, registry: SkillRegistry) -> None:
        self._registry = registry
        self._skills = {skill.name: skill for skill in registry.list() if skill.enabled}
        self.pinned = {name: _pinned(skill) for name, skill in self._skills.items()}
        self.active = {skill.name: self.pinned[skill.name] for skill in registry.get_active()}

    def ranked(self, query: str) -> list[tuple[PinnedSkill, float]]:
        return [(self.pinned[name], score) for name, score in self._registry.scores(query).items()]

    def text(self, skills: Sequence[PinnedSkill], *, heads_only: bool) -> str:
        instructions = Instructions(SkillSettings.now().CONTEXT_BYTES, heads_only=heads_only)
        texts = []
        for one in skills:
            skill = self._skills[one.name]
            directory = str(skill.path.parent) if skill.path else None
            files = sorted([*skill.files, *(path for path, _ in skill.documents)])
            texts.append(instructions.of(one, skill.content, list(dict.fromkeys(files)), directory))
        return "\n\n".join(texts)


def _pinned(skill: Skill) -> PinnedSkill:
    trust = "built-in" if is_built_in(skill) else "local"
    return PinnedSkill(0, skill.document.digest, trust, skill.head)


class RegisteredSkills(os.PathLike[str]):
    """The directory of the skills that a program registered. It is written when its path is needed.

    The path depends only on the contents, so runs with the same skills share the directory.
    """

    def __init__(self, registry: SkillRegistry) -> None:
        self._registry = registry

    def __fspath__(self) -> str:
        packages = {skill.name: _files(skill) for skill in self._registry.registered()}
        digest = hash_files(
            (f"{name}/{file.path}", file.executable, file.sha256)
            for name, files in packages.items()
            for file in files
        )
        place = DataSettings.now().DATA_DIR / "registered-skills" / digest[:32]
        place.mkdir(parents=True, exist_ok=True)
        for name, files in packages.items():
            if not (place / name).exists():
                write_folder(place / name, files)
        return str(place)

    def __repr__(self) -> str:
        return f"<{len(self._registry.registered())} registered skills>"


def _files(skill: Skill) -> list[PackageFile]:
    """Return the files of the skill's package."""
    if skill.path is not None:
        package = read_folder(Path(skill.path).parent)
        if package.head.name == skill.name and package.body == skill.content:
            return export_files(package, package.head)
    text = head_text(skill.head) + skill.content
    documents = [PackageFile(path, text.encode()) for path, text in skill.documents]
    return [PackageFile(SKILL_FILE, text.encode()), *documents]


def check_registered(registry: SkillRegistry) -> None:
    """Check the registered skills as an agent would.

    Raises `InvalidSkill` for the first invalid one.
    """
    for skill in registry.registered():
        package, problems = read_package(_files(skill), skill.name)
        if package is None:
            raise InvalidSkill(f"The skill {skill.name}: {refused(problems)}", problems)
