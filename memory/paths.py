"""Valid paths of a memory.

A path is relative to the agent's memory, such as `knowledge/preferences.md`. Invalid paths are
refused for reading too: each file has exactly one spelling.
"""

from __future__ import annotations

import re
import unicodedata

MAX_PATH_CHARACTERS = 200
MAX_DEPTH = 8

MOUNT = "/memory"
"""The path of an agent's memory for file tools. Commands have no access to it."""

PROMPT = "AGENTS.md"
TOOLS = "tools.json"
READ_ONLY = frozenset({PROMPT, TOOLS})
"""Read-only views of the agent's settings."""
DIRECTORIES = ("knowledge", "skills")
PERSONAL = "me"
"""Each user's own directory, private to this user. Exported folders do not contain it."""
ALWAYS = "knowledge/always.md"
"""The file whose start is part of each prompt (see `memory.limits.ALWAYS_BYTES`)."""
PERSONAL_ALWAYS = f"{PERSONAL}/always.md"
"""The same for the prompts of one person."""

# Only ASCII outside of skills/, because two names that look the same would be two files. A name
# does not start with a space, "." or "-", and does not end with a space or ".", so that an exported
# folder is the same on every system.
_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_. -]*[A-Za-z0-9_-])?")
MAX_SKILL_NAME = 64
# Skill names may use letters and digits of any script. Letters of these scripts look alike, so a
# name may use only one of the scripts.
_SKILL = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_ALIKE = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC"})
_CONTENT_TYPES = {".md": "text/markdown", ".json": "application/json", ".csv": "text/csv"}


# Names of devices on Windows, where they are reserved with every extension.
_DEVICE = re.compile(r"(?:con|prn|aux|nul|(?:com|lpt)[0-9]) *(?:\..*)?", re.IGNORECASE)


class InvalidPath(ValueError):
    """The path is invalid in a memory, or this caller cannot use it. The message says why."""


def check_path(path: str) -> str:
    """Return `path` if it is valid. Raises `InvalidPath`."""
    if path in READ_ONLY:
        return path
    if len(path) > MAX_PATH_CHARACTERS:
        raise InvalidPath(f"The path is longer than {MAX_PATH_CHARACTERS} characters.")
    directory, *names = path.split("/")
    if directory not in (*DIRECTORIES, PERSONAL) or not names:
        raise InvalidPath(
            f"{path!r} is not a path of the memory: start with knowledge/, skills/ or me/, as in "
            "knowledge/preferences.md, without a leading slash."
        )
    if len(names) >= MAX_DEPTH:
        raise InvalidPath(f"{path!r} is deeper than {MAX_DEPTH} levels.")
    if devices := [name for name in names if _DEVICE.fullmatch(name)]:
        raise InvalidPath(
            f"{path!r}: Windows reserves the name {devices[0]!r}, so an exported folder could not "
            "have it: choose another name."
        )
    if directory == "skills":
        return _check_skill(path, names)
    wrong = [name for name in names if not _NAME.fullmatch(name)]
    if wrong:
        raise InvalidPath(
            f"{path!r}: the name {wrong[0]!r} is invalid. Use letters a to z, digits, "
            "'.', '_', '-' and inner spaces; there is no '..'."
        )
    return path


def _check_skill(path: str, names: list[str]) -> str:
    name = names[0].removesuffix(".md")
    plain = unicodedata.normalize("NFKC", name).lower()
    if len(names) != 1 or f"{plain}.md" != names[0] or not _SKILL.fullmatch(name):
        raise InvalidPath(
            f"{path!r}: a skill is skills/NAME.md, its name in lower-case letters, digits and "
            "single hyphens, as in skills/weekly-report.md."
        )
    if len(name) > MAX_SKILL_NAME:
        raise InvalidPath(f"{path!r}: the name has more than {MAX_SKILL_NAME} characters.")
    scripts = {unicodedata.name(character, "").partition(" ")[0] for character in name}
    if len(scripts & _ALIKE) > 1:
        raise InvalidPath(
            f"{path!r}: the name mixes letters of {' and '.join(sorted(scripts & _ALIKE))}, which "
            "look alike: use those of one script."
        )
    return path


def is_personal(path: str) -> bool:
    """Return whether a file belongs to one person: it is below `me/`."""
    return path.startswith(f"{PERSONAL}/")


def shown_path(path: str) -> str:
    """Return the path that other people may see: for a file of `me/`, only the directory."""
    return f"{PERSONAL}/" if is_personal(path) else path


def person_at(path: str, person_id: int | None) -> int | None:
    """Return the owner of the file at a valid path; None for a file of the agent.

    `person_id` is the person who reads or changes the file. Raises `InvalidPath` for a file of
    `me/` if `person_id` is None.
    """
    if not is_personal(path):
        return None
    if person_id is None:
        raise InvalidPath(
            f"{path!r}: {PERSONAL}/ is the memory of one person. Only this person changes it, and "
            "only read_memory and list_memory read it, in this person's own conversations."
        )
    return person_id


def check_writable(path: str) -> str:
    """Return `path` if it is valid and can be changed.

    Raises `InvalidPath`, also for the two read-only files that show the agent's settings.
    """
    if check_path(path) in READ_ONLY:
        raise InvalidPath(
            f"{path} is read-only: people change it in the agent's settings. "
            "Propose notes as knowledge/NAME.md."
        )
    return path


def content_type_of(path: str) -> str:
    """Return the media type that belongs to the file name's extension; plain text by default."""
    dot = path.rfind(".")
    return _CONTENT_TYPES.get(path[dot:].lower(), "text/plain") if dot > 0 else "text/plain"
