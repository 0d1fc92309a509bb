"""docs/reference/agent-file.md: the fields of an agent file, from its JSON schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from docs_tools.markdown import cell, plain

_INTRO = """\
<!-- Generated from the JSON schema by `make reference`: do not edit. -->

# Fields of an agent file

An agent file is YAML with the fields below. A field that you leave out gets its default.
[Agents as files](../guides/agent-files.md) explains how to export and import them.
[agent.schema.json](agent.schema.json) is the JSON schema of the file, for editors that check while
you type.
"""
_LARGEST = {2**31 - 1, 2**63 - 1}
"""Limits of the database, which say nothing to a reader."""


def page(schema: Mapping[str, Any]) -> str:
    """Return the page for the schema of `vel agents schema`."""
    lines = [_INTRO, *_table(schema)]
    for name, part in sorted(schema["$defs"].items()):
        if "properties" in part:
            lines += [f"## {name}", "", *_introduction(part), *_table(part)]
    return "\n".join(lines)


def _introduction(part: Mapping[str, Any]) -> Iterator[str]:
    for paragraph in filter(None, part.get("description", "").split("\n\n")):
        yield f"{_linked(plain(paragraph))}\n"


def _linked(text: str) -> str:
    """Return Markdown with links for names of pages, such as docs/guides/mcp.md."""
    return re.sub(r"docs/guides/([\w-]+)\.md", r"[\1](../guides/\1.md)", text)


def _table(part: Mapping[str, Any]) -> Iterator[str]:
    required = part.get("required", [])
    yield "| field | type | default | meaning |\n|---|---|---|---|"
    for name, field in part["properties"].items():
        default = "*required*" if name in required else _default(field)
        meaning = _linked(plain(field.get("description", "")))
        yield f"| `{name}` | {cell(_type(field))} | {cell(default)} | {cell(meaning)} |"
    yield ""


def _default(field: Mapping[str, Any]) -> str:
    default = field.get("default")
    if isinstance(default, Mapping):
        default = {name: value for name, value in default.items() if value is not None}
    return "" if default in (None, "", [], {}) else f"`{json.dumps(default, ensure_ascii=False)}`"


def _type(field: Mapping[str, Any], limits: bool = True) -> str:
    """Return the type for a reader, such as `list of string` or `"none", "full"`."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return "any" if name == "JsonValue" else f"[{name}](#{name.lower()})"
    if "anyOf" in field:
        options = [
            _type(option, limits) for option in field["anyOf"] if option.get("type") != "null"
        ]
        return " or ".join(options)
    if "enum" in field:
        return ", ".join(f"`{json.dumps(value)}`" for value in field["enum"])
    if field.get("type") == "array":
        items = field.get("items", {})
        limit = f", at most {field['maxItems']}" if "maxItems" in field else ""
        return f"list of {_type(items, limits=False)}{limit}"
    if field.get("type") == "object":
        values = field.get("additionalProperties")
        of = _type(values) if isinstance(values, Mapping) else "any"
        return "object" if of == "any" else f"object with values of {of}"
    return f"{field.get('type', 'any')}{_limits(field) if limits else ''}"


def _limits(field: Mapping[str, Any]) -> str:
    least = field.get("minimum", field.get("exclusiveMinimum"))
    most = field.get("maximum", field.get("exclusiveMaximum"))
    if most in _LARGEST:
        most = None
    if least is not None and most is not None:
        return f", {_number(least)} to {_number(most)}"
    if least is not None:
        return f", at least {_number(least)}"
    if "maxLength" in field:
        return f", at most {_number(field['maxLength'])} characters"
    return f", matches `{field['pattern']}`" if "pattern" in field else ""


def _number(value: float) -> str:
    return re.sub(r"\.0$", "", f"{value:,}")
