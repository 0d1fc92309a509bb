"""Read the descriptions of a function and of its parameters from its docstring."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

_SECTIONS = (
    "args|arguments|parameters|params|returns?|yields?|raises|examples?|notes?|attributes|see also"
)
_GOOGLE = re.compile(rf"^({_SECTIONS}):\s*$", re.IGNORECASE)
_ARGUMENTS = re.compile(r"^(args|arguments|parameters|params):?\s*$", re.IGNORECASE)
_UNDERLINE = re.compile(r"^-{3,}\s*$")
_SPHINX = re.compile(r"^:(?:param|parameter|arg|argument)\s+(?:[^:]*\s)?(\w+)\s*:\s*(.*)$")
_SPHINX_OTHER = re.compile(r"^:(returns?|rtype|raises|type|yields?)\b")
_GOOGLE_ITEM = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_NUMPY_ITEM = re.compile(r"^(\w+)\s*(?::.*)?$")


@dataclass(frozen=True, slots=True)
class Described:
    """`summary` is the text before the first section, `parameters` are texts by name."""

    summary: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


def describe(function: Callable[..., Any]) -> Described:
    """Read the docstring in the styles of Google, NumPy and Sphinx."""
    text = inspect.getdoc(function) or ""
    lines = text.splitlines()
    summary: list[str] = []
    found: dict[str, list[str]] = {}
    section = ""
    base: int | None = None
    name = ""
    for number, line in enumerate(lines):
        stripped = line.strip()
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if _UNDERLINE.match(line) and section:
            continue
        is_numpy = bool(_UNDERLINE.match(following)) and bool(
            re.fullmatch(_SECTIONS, stripped, re.IGNORECASE)
        )
        if _GOOGLE.match(line) or is_numpy:
            is_list = bool(_ARGUMENTS.match(stripped))
            section = ("numpy" if is_numpy else "google") if is_list else "other"
            base, name = None, ""
            continue
        if (sphinx := _SPHINX.match(stripped)) is not None:
            section, name = "sphinx", sphinx[1]
            found[name] = [sphinx[2]]
            continue
        if _SPHINX_OTHER.match(stripped):
            section, name = "other", ""
            continue
        if not section:
            summary.append(line)
            continue
        if section == "other" or not stripped:
            continue
        indent = len(line) - len(line.lstrip())
        if section in ("google", "numpy"):
            base = indent if base is None else base
            pattern = _GOOGLE_ITEM if section == "google" else _NUMPY_ITEM
            item = pattern.match(stripped) if indent == base else None
            if item is not None:
                name = item[1]
                found[name] = [item[2]] if section == "google" else []
                continue
        if name:
            found[name].append(stripped)
    return Described(
        _joined(summary),
        {key: " ".join(part for part in parts if part) for key, parts in found.items()},
    )


def _joined(lines: Iterable[str]) -> str:
    """Return the paragraphs of a text, each as one line."""
    paragraphs = re.split(r"\n\s*\n", "\n".join(lines).strip())
    return "\n".join(" ".join(part.split()) for part in paragraphs if part.strip())
