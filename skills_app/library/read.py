"""Reading of a package from its files, with all problems together."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sandbox.backends.normal_form import normal_form
from skills_app.library.errors import InvalidSkill
from skills_app.library.frontmatter import read_skill, split_skill
from skills_app.library.head import read_head
from skills_app.library.limits import limit_problems
from skills_app.library.nested import nested_problems
from skills_app.library.package import SKILL_FILE, Head, Package, PackageFile, errors_of
from skills_app.library.paths import path_problems
from skills_app.library.problems import Problem, error, warning

_MAX_TOLD = 10


def read_package(
    files: Sequence[PackageFile],
    directory_name: str | None = None,
    *,
    taken: Collection[str] = (),
) -> tuple[Package | None, list[Problem]]:
    """Return (the package, all problems). The package is None if a problem is an error.

    `files` are those of one package with their paths in it; `skill.md` counts as SKILL.md.
    `directory_name` is the name of the package's directory, if there is one. `taken` are names of
    other skills, which no SKILL.md inside the package may have.
    """
    problems = limit_problems(files)
    named, found = _with_skill_file(files)
    problems += found + path_problems([file.path for file in named])
    skill = next((file for file in named if file.path == SKILL_FILE), None)
    if skill is None:
        return None, problems
    try:
        text = _text_of(skill.data)
        fields, body = read_skill(text)
    except InvalidSkill as refusal:
        return None, [*problems, error("head", str(refusal), SKILL_FILE)]
    head, found = read_head(fields, fallback_name=directory_name)
    problems += found
    if not body.strip():
        problems.append(
            error("body", "The skill has no instructions: write them below the head.", SKILL_FILE)
        )
    if head is not None:
        problems += _directory_problems(head, directory_name)
        problems += nested_problems(named, head.name, taken)
    if head is None or errors_of(problems):
        return None, problems
    ordered = tuple(sorted(named, key=lambda file: file.path))
    return Package(head, text, body, ordered, tuple(problems)), problems


def read_text(text: str) -> Package:
    """Return a skill that is only a SKILL.md. Raises `InvalidSkill` with all problems."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        half = error("characters", "It holds halves of characters: remove them.", SKILL_FILE)
        raise refused([half]) from None
    return require_package(*read_package([PackageFile(SKILL_FILE, data)]))


def body_of(text: str) -> str:
    """Return the part of a stored SKILL.md after its head; all of it without a head."""
    try:
        return split_skill(text)[1]
    except InvalidSkill:
        return text


def require_package(package: Package | None, problems: Sequence[Problem]) -> Package:
    """Return `package`, or raise `InvalidSkill` with `problems`."""
    if package is None:
        raise refused(problems)
    return package


def refused(problems: Sequence[Problem]) -> InvalidSkill:
    """Return the exception for `problems`: the message contains up to ten errors."""
    errors = errors_of(problems)
    told = " ".join(str(problem) for problem in errors[:_MAX_TOLD])
    if len(errors) > _MAX_TOLD:
        told += f" And {len(errors) - _MAX_TOLD:,} more."
    return InvalidSkill(told, problems)


def _with_skill_file(files: Sequence[PackageFile]) -> tuple[list[PackageFile], list[Problem]]:
    """Return the files, with SKILL.md under the name in the specification."""
    paths = {file.path for file in files}
    lower = SKILL_FILE.lower()
    if SKILL_FILE in paths:
        return list(files), []
    if lower in paths:
        renamed = [
            PackageFile(SKILL_FILE, file.data, file.executable) if file.path == lower else file
            for file in files
        ]
        return renamed, [warning("skill_file", "It is taken as SKILL.md: rename it.", lower)]
    near = sorted(path for path in paths if path.lower() == lower)
    hint = f" Rename {near[0]} to that." if near else ""
    return list(files), [error("missing", f"Missing required file: SKILL.md.{hint}")]


def _text_of(data: bytes) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise InvalidSkill(
            f"It is not UTF-8 text (at byte {problem.start:,}): save it as UTF-8."
        ) from None
    if "\0" in text:
        raise InvalidSkill("It holds a NUL character: save it as plain text.")
    return text


def _directory_problems(head: Head, directory: str | None) -> list[Problem]:
    if directory is None or normal_form("NFKC", directory) == head.name:
        return []
    message = (
        f"Directory name {directory[:80]!a} must match skill name {head.name}: rename one of "
        "the two."
    )
    return [warning("directory", message)]
