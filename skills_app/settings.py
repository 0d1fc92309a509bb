"""The limits and places of skills: `settings.VEL_SKILLS`."""

import os
from pathlib import Path
from typing import Annotated

from agents.kernel.settings import About, Bytes, Count, FeatureSettings, split
from agents.settings.data import DataSettings


def directories(text: str) -> tuple[str, ...]:
    """Return absolute paths from a comma-separated list; `~` is the home of this account.

    Raises `ValueError`.
    """
    paths = [os.path.expanduser(item) for item in split(text)]
    for path in paths:
        if not os.path.isabs(path):
            raise ValueError(f"absolute paths, and {path!r} is relative")
    return tuple(dict.fromkeys(os.path.normpath(path) for path in paths))


class SkillSettings(FeatureSettings):
    """Skills

    These are in the dictionary `VEL_SKILLS`; their environment variables start with `VEL_SKILLS_`.
    The settings with a number are limits. Of 1,345 public packages the largest has 5.6 MB and 145
    files. See [skills](../guides/skills.md).
    """

    DICTIONARY = "VEL_SKILLS"
    PREFIX = "VEL_SKILLS_"
    IN_PROGRAMS = True
    WITHOUT_DJANGO = True

    DIRECTORIES: Annotated[
        tuple[str, ...],
        About(variables=("VEL_SKILLS_DIRS",), parse=directories, expected="absolute paths"),
    ] = ()
    """[Directories of skills](../guides/skills-directories.md) that every agent has, as absolute
    paths. They are read again at the start of each run."""
    STORE: Annotated[str, About(default="`skills` in the data directory")] = ""
    """Where unpacked skills are stored for sandboxes."""
    PACKAGE_BYTES: Bytes = 20_000_000
    """All files of one package."""
    FILE_BYTES: Bytes = 10_000_000
    """One file of a package."""
    FILES: Count = 1_000
    """Files of one package."""
    DEPTH: Count = 10
    """Directories above a file."""
    PATH_CHARACTERS: Count = 200
    """The path of a file in its package."""
    ARCHIVE_BYTES: Bytes = 20_000_000
    """A zip or `.skill` file that is uploaded."""
    DIRECTORY_SKILLS: Count = 500
    """Packages in one directory of skills."""
    DIRECTORY_ENTRIES: Count = 50_000
    """Files and directories in one directory of skills."""
    HEAD_BYTES: Bytes = 16_384
    """The YAML header of a SKILL.md; the longest public one has 2 kB."""
    BODY_BYTES: Bytes = 500_000
    """A SKILL.md."""
    NAME_CHARACTERS: Count = 64
    """The name of a skill."""
    DESCRIPTION_CHARACTERS: Count = 1024
    """The description of a skill."""
    COMPATIBILITY_CHARACTERS: Count = 500
    """The field `compatibility`."""
    LIST_ITEMS: Count = 100
    """Tags, triggers, dependencies and tools: of each."""
    METADATA_ITEMS: Count = 100
    """Entries of the field `metadata`."""
    CATALOGUE_BYTES: Bytes = 6_000
    """Names and descriptions of skills in the system prompt."""
    CONTEXT_BYTES: Bytes = 100_000
    """Text that the model receives for a loaded skill, including the skills that it requires."""
    SUGGESTIONS: Count = 3
    """Skills that the model receives as suggestions with a message."""

    @property
    def store_directory(self) -> Path:
        """Return the directory of unpacked skills on this machine."""
        return Path(self.STORE) if self.STORE else DataSettings.now().DATA_DIR / "skills"


SETTINGS = (SkillSettings,)
UPLOAD_LIMITS = (lambda: SkillSettings.now().ARCHIVE_BYTES,)
