"""Print the pinned packages of Vel's extras, with their hashes, for `pip install --require-hashes`.

`python deploy/extras.py "mcp,s3"` reads pyproject.toml and requirements/dev.txt in the working
directory. It needs only the standard library, because the image has no other packages yet.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

_DEVELOPMENT = ("dev",)
"""Extras that are no part of an image."""


def requirements_of(extras: Iterable[str], project: str) -> list[str]:
    """Return the normalised names of the packages of `extras` in the text of a pyproject.toml.

    Raises:
        ValueError: An extra does not exist.
    """
    known = tomllib.loads(project)["project"]["optional-dependencies"]
    names = []
    for extra in extras:
        if extra not in known or extra in _DEVELOPMENT:
            offered = ", ".join(sorted(set(known) - set(_DEVELOPMENT)))
            raise ValueError(f"Vel has no extra {extra!r}. It has: {offered}.")
        names += [_normalised(re.split(r"[^A-Za-z0-9._-]", line)[0]) for line in known[extra]]
    return names


def pinned(names: Iterable[str], lock: str) -> list[str]:
    """Return the blocks of `lock` for `names` and for everything that they need.

    `lock` is a requirements file of uv, whose comments say which package needs another one.

    Raises:
        ValueError: A package is not in `lock`.
    """
    blocks = re.split(r"\n(?=[A-Za-z0-9])", lock[lock.index("\n", lock.rindex("\n#    make")) :])
    needed_by: dict[str, set[str]] = {}
    for block in blocks:
        users = re.findall(r"^    #(?: via)? +(\S+)", block, re.MULTILINE)
        needed_by.setdefault(_name(block), set()).update(map(_normalised, users))
    chosen = set(names)
    if missing := chosen - set(needed_by):
        raise ValueError(f"requirements/dev.txt does not pin {', '.join(sorted(missing))}.")
    while more := {name for name, users in needed_by.items() if users & chosen} - chosen:
        chosen |= more
    return [block.rstrip() for block in blocks if _name(block) in chosen]


def _name(block: str) -> str:
    return _normalised(re.split(r"==|\[", block.strip(), maxsplit=1)[0])


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> int:
    """Print the packages of the extras in the first argument. Return the exit code."""
    extras = [name for name in sys.argv[1].replace(",", " ").split() if name]
    try:
        names = requirements_of(extras, Path("pyproject.toml").read_text(encoding="utf-8"))
        lines = pinned(names, Path("requirements/dev.txt").read_text(encoding="utf-8"))
    except ValueError as error:
        print(f"EXTRAS: {error}", file=sys.stderr)
        return 1
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
