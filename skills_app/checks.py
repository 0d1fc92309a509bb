"""Django system checks of the directories of skills, because their contents instruct agents."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.core.exceptions import ImproperlyConfigured

from skills_app.settings import SkillSettings

_PACKAGES = 500
"""The maximum number of directories in a directory of skills that are checked."""


@register(Tags.security)
def check_skills(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Check that the settings are valid and that only the owners can write to the directories."""
    try:
        settings, store = SkillSettings.now(), SkillSettings.now().store_directory
    except ImproperlyConfigured:
        return []  # `check_vel_settings` reports this
    return [*_check_directories(settings), *_check_store(store)]


def _check_directories(settings: SkillSettings) -> Iterator[CheckMessage]:
    for directory in map(Path, settings.DIRECTORIES):
        try:
            with os.scandir(directory):
                pass
        except OSError:
            continue  # `check_directories` reports this
        place = open_to_everybody(directory)
        if place is not None:
            yield Error(
                f"Every account of this machine may write to {place}, and the contents of the "
                f"directory of skills {directory} instruct agents.",
                hint=f"chmod o-w {place}",
                id="vel.E010",
            )


def open_to_everybody(directory: Path) -> Path | None:
    """Return the first path through which any account could change the skills in `directory`.

    Checks the directory, the packages directly in it, and its parents; None if all are safe. A
    sticky parent such as /tmp is safe: everybody can create files there, but not replace those of
    others.
    """
    real = directory.resolve()
    for above in real.parents:
        mode = above.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            return above
    for place in (real, *_packages(real)):
        try:
            mode = place.lstat().st_mode
        except OSError:
            continue  # deleted since
        if mode & stat.S_IWOTH and not stat.S_ISLNK(mode):
            return place
    return None


def _packages(directory: Path) -> Iterator[Path]:
    with os.scandir(directory) as entries:
        for entry in islice(entries, _PACKAGES):
            yield Path(entry.path)
            if entry.is_dir(follow_symlinks=False):
                yield Path(entry.path, "SKILL.md")


def _check_store(store: Path) -> Iterator[CheckMessage]:
    problem = store_problem(store)
    if problem:
        yield Warning(
            f"Skills cannot be unpacked for sandboxes: {problem}. Runs with skills fail.",
            hint="Make it writable for this account, or set STORE in VEL_SKILLS.",
            id="vel.W005",
        )


def store_problem(store: Path) -> str:
    """Return why this account cannot write to `store`, "" if it can. `store` need not exist."""
    place = next(there for there in (store, *store.parents) if os.path.lexists(there))
    if not place.is_dir():
        return f"{place} is not a directory"
    if not os.access(place, os.W_OK | os.X_OK, effective_ids=True):
        return f"this account may not write to {place}"
    return ""


@register()
def check_directories(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Check that the directories of the settings are readable."""
    try:
        SkillSettings.now()
    except (ImproperlyConfigured, TypeError):
        return []  # `check_vel_settings` reports this
    return [Error(problem, id="vel.E016") for problem in directory_problems()]


def directory_problems() -> list[str]:
    """Return one message for each directory of the settings that is unreadable."""
    return [
        f'VEL_SKILLS_DIRS (settings.VEL_SKILLS["DIRECTORIES"]): {problem} Make the directory '
        "readable for this account, or remove it from the setting."
        for directory in SkillSettings.now().DIRECTORIES
        if (problem := _unreadable(Path(directory)))
    ]


def _unreadable(directory: Path) -> str:
    try:
        with os.scandir(directory):
            return ""
    except OSError as error:
        return f"{str(directory)!r} cannot be read ({error.strerror})."


OWN_PROCESS = [directory_problems]
