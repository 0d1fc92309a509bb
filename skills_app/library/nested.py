"""SKILL.md files inside of a package: plain files of it, never separate skills.

Public packages have them as templates, examples and chapters (17 of 4,136). Other programs find
every SKILL.md in a directory, and there such a file could replace another skill of its name: a file
with the name of a known skill is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path, PurePosixPath

from skills_app.library.errors import InvalidSkill
from skills_app.library.frontmatter import read_skill
from skills_app.library.normalise import normalise_name
from skills_app.library.package import SKILL_FILE, PackageFile
from skills_app.library.problems import Problem, error, warning

_BUILT_IN = Path(__file__).parents[1] / "builtin"


def nested_problems(
    files: Sequence[PackageFile], name: str, taken: Collection[str] = ()
) -> list[Problem]:
    """Return problems of the files called SKILL.md in subdirectories of the package `name`.

    `taken` are names of other skills; the built-in ones always count.
    """
    known = (set(taken) | built_in_names()) - {name}
    problems, harmless = [], []
    for file in files:
        if "/" not in file.path or PurePosixPath(file.path).name.lower() != SKILL_FILE.lower():
            continue
        replaced = sorted(_names(file) & known)
        if replaced:
            problems.append(
                error(
                    "nested",
                    f"It would replace the skill {replaced[0]}, which there is already: rename "
                    "its directory and its head, or leave it out.",
                    file.path,
                )
            )
        else:
            harmless.append(file.path)
    if harmless:
        shown = ", ".join(harmless[:5]) + (" …" if len(harmless) > 5 else "")
        problems.append(
            warning("nested", f"A SKILL.md inside a package is no skill of its own: {shown}.")
        )
    return problems


@cache
def built_in_names() -> frozenset[str]:
    """Return the names of the skills of this release."""
    return frozenset(path.parent.name for path in _BUILT_IN.glob(f"*/{SKILL_FILE}"))


def _names(file: PackageFile) -> set[str]:
    """Return the names that other programs may give it: from its head, from its directory."""
    names = {normalise_name(PurePosixPath(file.path).parent.name)}
    try:
        fields, _ = read_skill(file.data[:100_000].decode(errors="replace"))
    except InvalidSkill:
        return names
    said = fields.get("name")
    return names | ({normalise_name(said)} if isinstance(said, str) else set())
