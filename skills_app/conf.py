"""The limits and places of skills: `settings.VEL_SKILLS`, typed, with defaults."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed


@dataclass(frozen=True)
class SkillSettings:
    """Sizes are bytes. Of 1,345 public packages the largest has 5.6 MB and 145 files."""

    DIRECTORIES: tuple[str, ...] = ()
    """Directories of skills that every agent has, read anew at the start of each run."""
    STORE: str = ""
    """Where unpacked skills lie for sandboxes. Empty: `skills` below the data directory."""
    PACKAGE_BYTES: int = 20_000_000
    """All files of one package."""
    FILE_BYTES: int = 10_000_000
    FILES: int = 1_000
    DEPTH: int = 10
    """Directories above a file."""
    PATH_CHARACTERS: int = 200
    ARCHIVE_BYTES: int = 20_000_000
    """A zip or `.skill` file as it is uploaded."""
    DIRECTORY_SKILLS: int = 500
    """Packages in one directory of skills."""
    DIRECTORY_ENTRIES: int = 50_000
    """Files and directories in one directory of skills."""
    HEAD_BYTES: int = 16_384
    """The head of a SKILL.md; the longest public one has 2 kB."""
    BODY_BYTES: int = 500_000
    """A SKILL.md."""
    NAME_CHARACTERS: int = 64
    DESCRIPTION_CHARACTERS: int = 1024
    COMPATIBILITY_CHARACTERS: int = 500
    LIST_ITEMS: int = 100
    """Tags, triggers, dependencies, tools: of each."""
    METADATA_ITEMS: int = 100
    CATALOGUE_BYTES: int = 6_000
    """What the names and descriptions of skills may take in the system prompt."""
    CONTEXT_BYTES: int = 100_000
    """What loading a skill gives the model, with the skills that it requires."""
    SUGGESTIONS: int = 3
    """Skills that are named to the model beside a message."""


@lru_cache(maxsize=1)
def skill_settings() -> SkillSettings:
    """The settings in force. An unknown key is an error that names the known ones."""
    # A script that only reads packages needs no settings: then the defaults count.
    has_settings = settings.configured or "DJANGO_SETTINGS_MODULE" in os.environ
    given = getattr(settings, "VEL_SKILLS", {}) if has_settings else {}
    known = {field.name for field in fields(SkillSettings)}
    unknown = sorted(set(given) - known)
    if unknown:
        raise ImproperlyConfigured(
            f"settings.VEL_SKILLS has unknown keys {', '.join(unknown)}; "
            f"known are {', '.join(sorted(known))}."
        )
    return SkillSettings(**given)


def store_directory() -> Path:
    """Where unpacked skills lie on this host."""
    given = skill_settings().STORE
    if given:
        return Path(given)
    return Path(getattr(settings, "VEL", {}).get("DATA_DIR", "/var/lib/vel")) / "skills"


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "VEL_SKILLS":
        skill_settings.cache_clear()


setting_changed.connect(_forget, dispatch_uid="skills_app.conf")
