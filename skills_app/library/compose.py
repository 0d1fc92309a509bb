"""Composition of a SKILL.md from a person's input."""

from __future__ import annotations

import yaml

from skills_app.library.frontmatter import Value, read_skill


def compose_skill(fields: dict[str, Value], body: str) -> str:
    """Return a SKILL.md with this head and body. `read_skill` gives the same fields back."""
    head = yaml.safe_dump(fields, allow_unicode=True, sort_keys=False, width=10_000)
    return f"---\n{head}---\n\n{body.strip()}\n"


def recompose_skill(
    text: str,
    *,
    name: str | None = None,
    description: str | None = None,
    instructions: str | None = None,
) -> str:
    """Return `text` with the given values replaced; its other fields stay.

    Raises `InvalidSkill` if `text` has no head.
    """
    fields, body = read_skill(text)
    given: dict[str, Value] = {}
    if name is not None:
        given["name"] = name
    if description is not None:
        given["description"] = description
    if given.items() <= fields.items():
        if instructions is None or instructions.strip() == body.strip():
            return text
        return f"{text[: len(text) - len(body)]}\n{instructions.strip()}\n"
    return compose_skill(fields | given, body if instructions is None else instructions)
