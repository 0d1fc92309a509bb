"""Check the paths in a package: each must have one spelling, the same on every system.

Files that tools leave in directories and archives are omitted with a warning. One reason: compiled
Python next to a script would run instead of the script that a reviewer has read.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

from sandbox.backends.normal_form import normal_form
from skills_app.library.problems import Problem, error, warning
from skills_app.settings import SkillSettings

_FORBIDDEN = frozenset('\\:*?"<>|')
_MAX_SHOWN = 200
_DEVICE = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9\u00b9\u00b2\u00b3]) *(\..*)?",
    re.IGNORECASE | re.DOTALL,
)
"""Names that Windows reserves for devices, with any extension."""
_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories of controls, marks of direction, surrogates and separators."""
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and symbols that are drawn as blanks."""


def path_problems(paths: Sequence[str]) -> list[Problem]:
    """Return all problems of `paths`, the relative paths of one package, with `/`."""
    problems = []
    right = []
    for path in paths:
        wrong = wrong_path(path)
        if wrong:
            problems.append(error("path", wrong, shown_path(path)))
        else:
            right.append(path)
    # Compare only valid paths, which are short: one character can become eighteen when folded.
    return problems + _collisions(right)


def shown_path(path: str) -> str:
    """Return `path` for a message: shortened, with surrogates as escapes."""
    text = path[:_MAX_SHOWN].encode("utf-8", "backslashreplace").decode()
    return f"{text}…" if len(path) > _MAX_SHOWN else text


def wrong_path(path: str) -> str:
    """Return why `path` is invalid for a file in a package, "" if it is valid."""
    limits = SkillSettings.now()
    if len(path) > limits.PATH_CHARACTERS:
        return f"The path is longer than {limits.PATH_CHARACTERS} characters: shorten it."
    if path.count("/") > limits.DEPTH:
        return f"The file is deeper than {limits.DEPTH} directories: move it up."
    return unsafe_path(path)


def unsafe_path(path: str) -> str:
    """Return why operating systems could disagree about `path`, "" if they agree.

    The length is not checked.
    """
    if not path or path.startswith("/"):
        return "The path is empty or absolute: give it relative to the package."
    names = path.split("/")
    if ".." in names:
        return "The path may lead out of the package: remove `..`."
    return next(filter(None, map(_wrong_name, names)), "")


def _wrong_name(name: str) -> str:
    if name in ("", "."):
        return "The path contains an empty name or `.`: remove it."
    if has_invisible(name):
        return (
            "The name contains control or invisible characters, or is not UTF-8: rename it "
            "with visible characters."
        )
    if _FORBIDDEN & set(name):
        return 'The name contains one of \\ : * ? " < > | which some systems refuse: rename it.'
    if name[-1] in ". " or name[0] == " ":
        return "The name ends with a dot, or starts or ends with a space: rename it."
    if is_device(name):
        return "The name is reserved for a device on Windows: rename it."
    if len(name.encode()) > 255:
        return "The name is longer than 255 bytes: shorten it."
    return ""


def _collisions(paths: Sequence[str]) -> list[Problem]:
    """Return an error for each path that differs from another only in case or Unicode composition.

    Paths that occur twice, and files with the path of a directory, are errors too.
    """
    problems = [
        error("collision", "The path occurs more than once: keep one.", shown_path(path))
        for path, count in Counter(paths).items()
        if count > 1
    ]
    spelled: dict[str, str] = {}
    files = {_folded(path) for path in paths}
    for path in dict.fromkeys(paths):
        names = path.split("/")
        for depth in range(1, len(names) + 1):
            part = "/".join(names[:depth])
            other = spelled.setdefault(_folded(part), part)
            if other != part:
                message = (
                    f"It differs from {shown_path(other)} only in case or spelling: rename it."
                )
            elif depth < len(names) and _folded(part) in files:
                message = f"{shown_path(part)} is a file and a directory: rename one."
            else:
                continue
            problems.append(error("collision", message, shown_path(path)))
            break
    return problems


def _folded(path: str) -> str:
    if path.isascii():
        return path.lower()
    return normal_form("NFKC", normal_form("NFKC", path).casefold())


def is_device(name: str) -> bool:
    """Return whether Windows reserves this name for a device."""
    return _DEVICE.fullmatch(name) is not None


def has_invisible(text: str) -> bool:
    """Return whether `text` has characters that are invisible or end a line. Spaces are allowed."""
    if text.isascii():
        return not text.isprintable()
    return any(
        character in _BLANK or unicodedata.category(character) in _CATEGORIES for character in text
    )


_DIRECTORIES = frozenset(
    {
        ".git",
        ".hg",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".svn",
        ".venv",
        "__MACOSX",
        "__pycache__",
        "node_modules",
    }
)
_FILES = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})


def is_junk(name: str) -> bool:
    """Return whether a file or directory called `name` (no path) is left out of packages."""
    return (
        name in _DIRECTORIES
        or name in _FILES
        or name.startswith("._")
        or name.endswith((".pyc", ".pyo"))
    )


def junk_problems(paths: Iterable[str]) -> list[Problem]:
    """Return a list with one warning that names the omitted files; [] if there are none."""
    left_out = sorted(paths)
    if not left_out:
        return []
    shown = ", ".join(map(shown_path, left_out[:5])) + (" …" if len(left_out) > 5 else "")
    return [warning("left_out", f"Left out, not part of the skill: {shown}.")]
