"""Read a package from its files, and report all problems together.

The callers check the size limits while they read the files.

A SKILL.md in a subdirectory is a plain file of the package, not another skill. Public packages have
such files as templates, examples and chapters (17 of 4,136). Other programs find every SKILL.md in
a directory, so such a file could replace a skill of the same name there. If it has the name of a
known skill, the package is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path, PurePosixPath

from sandbox.backends.normal_form import normal_form
from skills_app.library.frontmatter import read_skill, split_skill
from skills_app.library.head import read_head
from skills_app.library.normalise import normalise_name
from skills_app.library.package import SKILL_FILE, Head, Package, PackageFile, errors_of
from skills_app.library.paths import path_problems
from skills_app.library.problems import InvalidSkill, Problem, error, strictly, warning
from skills_app.settings import SkillSettings

_MAX_TOLD = 10


def read_package(
    files: Sequence[PackageFile],
    directory_name: str | None = None,
    *,
    taken: Collection[str] = (),
) -> tuple[Package | None, list[Problem]]:
    """Return (the package, all problems). The package is None if a problem is an error.

    `files` are the files of one package; `skill.md` counts as SKILL.md. `directory_name` is the
    name of the package's directory, if there is one. `taken` are names of other skills, which no
    SKILL.md in a subdirectory may have.
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
    """Return the package that consists of the SKILL.md `text` alone.

    Raises `InvalidSkill` with all problems.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError:
        half = error("characters", "It contains halves of characters: remove them.", SKILL_FILE)
        raise refused([half]) from None
    return require_package(*read_package([PackageFile(SKILL_FILE, data)]), strict=True)


def body_of(text: str) -> str:
    """Return the part of a SKILL.md after its head, the whole `text` if it has no head."""
    try:
        return split_skill(text)[1]
    except InvalidSkill:
        return text


def require_package(
    package: Package | None, problems: Sequence[Problem], *, strict: bool = False
) -> Package:
    """Return `package`, or raise `InvalidSkill` with `problems` if there is none.

    `strict` also refuses fields that are too long. Use it for a skill that its author has just
    written and can shorten.
    """
    found = strictly(problems) if strict else list(problems)
    if package is None or errors_of(found):
        raise refused(found)
    return package


def refused(problems: Sequence[Problem]) -> InvalidSkill:
    """Return the exception for `problems`. Its message has at most ten errors."""
    errors = errors_of(problems)
    told = " ".join(str(problem) for problem in errors[:_MAX_TOLD])
    if len(errors) > _MAX_TOLD:
        told += f" And {len(errors) - _MAX_TOLD:,} more."
    return InvalidSkill(told, problems)


def _with_skill_file(files: Sequence[PackageFile]) -> tuple[list[PackageFile], list[Problem]]:
    """Return (the files with a `skill.md` renamed to SKILL.md, the problems of that)."""
    paths = {file.path for file in files}
    lower = SKILL_FILE.lower()
    if SKILL_FILE in paths:
        return list(files), []
    if lower in paths:
        renamed = [
            PackageFile(SKILL_FILE, file.data, file.executable) if file.path == lower else file
            for file in files
        ]
        return renamed, [warning("skill_file", "Vel reads it as SKILL.md: rename it.", lower)]
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
        raise InvalidSkill("It contains a NUL character: save it as plain text.")
    return text


def _directory_problems(head: Head, directory: str | None) -> list[Problem]:
    if directory is None or normal_form("NFKC", directory) == head.name:
        return []
    message = (
        f"Directory name {directory[:80]!a} must match skill name {head.name}: rename one of "
        "the two."
    )
    return [warning("directory", message)]


def is_skill_file(name: str) -> bool:
    """Return whether `name` (no path) is that of the file which makes a directory a package."""
    return name in (SKILL_FILE, SKILL_FILE.lower())


def file_limit(path: str) -> int:
    """Return the maximum size of the file `path` of a package in bytes."""
    limits = SkillSettings.now()
    return limits.BODY_BYTES if is_skill_file(path) else limits.FILE_BYTES


def limit_problems(files: Sequence[PackageFile]) -> list[Problem]:
    """Return an error for each limit that `files` exceed."""
    limits = SkillSettings.now()
    problems = [
        file_too_large(file.path) for file in files if len(file.data) > file_limit(file.path)
    ]
    if len(files) > limits.FILES:
        problems.append(too_many_files())
    if sum(len(file.data) for file in files) > limits.PACKAGE_BYTES:
        problems.append(package_too_large())
    return problems


def too_many_files() -> Problem:
    limit = SkillSettings.now().FILES
    return error(
        "too_many", f"The package has more than {limit:,} files: remove unnecessary files."
    )


def package_too_large() -> Problem:
    limit = SkillSettings.now().PACKAGE_BYTES
    return error(
        "too_large",
        f"The package exceeds the limit of {limit:,} bytes: remove unnecessary files.",
    )


def file_too_large(path: str) -> Problem:
    limit = file_limit(path)
    return error("too_large", f"The file exceeds the limit of {limit:,} bytes: shorten it.", path)


_BUILT_IN = Path(__file__).parents[1] / "builtin"


def nested_problems(
    files: Sequence[PackageFile], name: str, taken: Collection[str] = ()
) -> list[Problem]:
    """Return the problems of files called SKILL.md in subdirectories of the package `name`.

    `taken` are names of other skills. The names of built-in skills are always taken.
    """
    known = (set(taken) | built_in_names()) - {name}
    problems, harmless = [], []
    for file in files:
        if "/" not in file.path or PurePosixPath(file.path).name.lower() != SKILL_FILE.lower():
            continue
        by_directory, by_head = _names(file)
        places = [
            place
            for place, given in (("its directory", by_directory), ("`name` in its head", by_head))
            if given in known
        ]
        if places:
            problems.append(
                error(
                    "nested",
                    f"The skill {name} cannot be used with this file: other programs would load it "
                    f"instead of the skill {by_directory if by_directory in known else by_head}. "
                    f"Rename the file, for example to SKILL.example.md, rename "
                    f"{' and '.join(places)}, or leave the file out.",
                    file.path,
                )
            )
        else:
            harmless.append(file.path)
    if harmless:
        shown = ", ".join(harmless[:5]) + (" …" if len(harmless) > 5 else "")
        problems.append(
            warning("nested", f"A SKILL.md inside a package is not a separate skill: {shown}.")
        )
    return problems


@cache
def built_in_names() -> frozenset[str]:
    """Return the names of the built-in skills of this release."""
    return frozenset(path.parent.name for path in _BUILT_IN.glob(f"*/{SKILL_FILE}"))


def _names(file: PackageFile) -> tuple[str, str]:
    """Return the names that other programs may give a nested SKILL.md: (by directory, by head)."""
    directory = normalise_name(PurePosixPath(file.path).parent.name)
    try:
        fields, _ = read_skill(file.data[:100_000].decode(errors="replace"))
    except InvalidSkill:
        return directory, ""
    said = fields.get("name")
    return directory, normalise_name(said) if isinstance(said, str) else ""
