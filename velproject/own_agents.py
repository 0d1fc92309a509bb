"""Check that the package `agents` is Vel's own, and complete.

Other distributions have a package of this name, such as openai-agents. pip installs both into one
directory: the second one overwrites files of the first, and removing one removes files of both.
Every process checks this when it starts, so the check is fast and does not import `agents`.
"""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path

MARK = "This is the package `agents` of Vel"
"""A part of `agents/__init__.py`."""
_IN_AGENTS = re.compile(r"^agents/([^/,]+)", re.MULTILINE)
_OURS = Path(__file__).resolve().parent.parent / "agents"


def problem() -> str:
    """Return the problem and its solution in one line; empty if there is no problem."""
    spec = find_spec("agents")
    origin = spec.origin if spec is not None else None
    if origin is None:
        return _advice(f"The package 'agents' in {_OURS} is damaged")
    found = Path(origin).resolve()
    if found.parent != _OURS or MARK not in found.read_text(encoding="utf-8", errors="replace"):
        return _advice(f"The package 'agents' in {found.parent} is not Vel's")
    if foreign := _foreign_names():
        names = ", ".join(foreign[:3])
        return _advice(f"The package 'agents' in {_OURS} has files of another package ({names})")
    return ""


def _foreign_names() -> list[str]:
    """Return names in the package's directory that are not part of Vel's installation."""
    own: set[str] = set()
    for record in _OURS.parent.glob("vel-*.dist-info/RECORD"):
        own.update(_IN_AGENTS.findall(record.read_text(encoding="utf-8")))
    if not own:
        return []  # a clone of the repository
    return sorted(set(os.listdir(_OURS)) - own - {"__pycache__"})


def _advice(what: str) -> str:
    return (
        f"vel: {what}: another distribution, such as openai-agents, has a package with this name. "
        "Install Vel in a separate virtual environment."
    )
