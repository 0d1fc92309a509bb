"""Normalise skill names, so that each skill has one spelling."""

from __future__ import annotations

import re
import unicodedata

from sandbox.backends.normal_form import normal_form
from skills_app.library.package import SKILL_FILE
from skills_app.library.paths import has_invisible, is_device
from skills_app.library.problems import Problem, error, warning
from skills_app.settings import SkillSettings

_HYPHENS = re.compile(r"-+")
_MAX_ROUNDS = 8
"""Lower-casing and NFKC undo each other once or twice, never more often than this."""


def normalise_name(raw: str) -> str:
    """Return `raw` as a valid skill name, "" if nothing usable is left.

    The result is in NFKC and lower case and has only letters and digits of any script. Other
    characters become single hyphens inside the name: "PDF Processing" is `pdf-processing`. Accents
    that are separate characters, and invisible characters, are removed. The length is not checked.
    """
    name = raw
    for _ in range(_MAX_ROUNDS):
        folded = _hyphened(normal_form("NFKC", name).lower())
        if folded == name:
            break
        name = folded
    return name


def read_name(given: str, fallback: str | None) -> tuple[str, list[Problem]]:
    """Return (the normalised name, its problems).

    The name comes from `given`, the field of the head, or else from `fallback`, the directory's
    name. After an error it is "".
    """
    said = given.strip()
    if not said:
        return _from_directory(fallback)
    name = normalise_name(said)
    found = _unusable(said, name)
    if found is not None:
        return "", [found]
    if normal_form("NFKC", said) == name:
        return name, []
    return name, [_not_as_written(said, name)]


def _from_directory(directory: str | None) -> tuple[str, list[Problem]]:
    missing = "Missing required field in frontmatter: name."
    name = normalise_name(directory or "")
    if not name:
        return "", [error("name", f"{missing} Write one.", SKILL_FILE)]
    found = _unusable(directory or "", name)
    if found is not None:
        return "", [error("name", missing, SKILL_FILE), found]
    message = f"{missing} The directory's name is used: write name: {name}"
    return name, [warning("name", message, SKILL_FILE)]


def _unusable(said: str, name: str) -> Problem | None:
    limit = SkillSettings.now().NAME_CHARACTERS
    shown = ascii(said[:80])
    if has_invisible(said):
        message = f"The name {shown} contains invisible characters: remove them."
    elif said[0] in "/~" or "\\" in said or ".." in said.split("/"):
        message = f"The name {shown} is a path and contains invalid characters: write a name."
    elif not name:
        message = (
            f"The name {shown} contains invalid characters only: write letters, digits and hyphens."
        )
    elif len(name) > limit:
        message = f"The name exceeds {limit} character limit ({len(name)} chars): shorten it."
    elif is_device(name):
        message = f"The name {name} is reserved for a device on Windows: choose another."
    else:
        return None
    return error("name", message, SKILL_FILE)


def _not_as_written(said: str, name: str) -> Problem:
    """Return one warning with everything that the reference validator would report for `said`."""
    text = normal_form("NFKC", said)
    limit = SkillSettings.now().NAME_CHARACTERS
    wrong = []
    if len(text) > limit:
        wrong.append(f"exceeds {limit} character limit")
    if text != text.lower():
        wrong.append("must be lowercase")
    if text.startswith("-") or text.endswith("-"):
        wrong.append("cannot start or end with a hyphen")
    if "--" in text:
        wrong.append("cannot contain consecutive hyphens")
    if not all(character.isalnum() or character == "-" for character in text):
        wrong.append("contains invalid characters (only letters, digits and hyphens are allowed)")
    message = f"The name {said[:80]!r} {', '.join(wrong)}. Vel reads it as {name}: write this name."
    return warning("name", message, SKILL_FILE)


def _hyphened(text: str) -> str:
    kept = []
    for character in text:
        category = unicodedata.category(character)
        if character.isalnum():
            kept.append(character)
        elif category[0] != "M" and category != "Cf":
            kept.append("-")
    return _HYPHENS.sub("-", "".join(kept)).strip("-")
