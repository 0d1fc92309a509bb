"""Files that tools leave in directories and archives: they belong to no package.

They are omitted with a warning. Moreover, compiled Python next to a script would run instead of the
script that a reviewer has read.
"""

from __future__ import annotations

from collections.abc import Iterable

from skills_app.library.paths import shown_path
from skills_app.library.problems import Problem, warning

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
    """Return whether a file or a directory of this name (no path) is omitted."""
    return (
        name in _DIRECTORIES
        or name in _FILES
        or name.startswith("._")
        or name.endswith((".pyc", ".pyo"))
    )


def junk_problems(paths: Iterable[str]) -> list[Problem]:
    """Return one warning with the names of omitted files."""
    left_out = sorted(paths)
    if not left_out:
        return []
    shown = ", ".join(map(shown_path, left_out[:5])) + (" …" if len(left_out) > 5 else "")
    return [warning("left_out", f"Left out as no part of the skill: {shown}.")]
