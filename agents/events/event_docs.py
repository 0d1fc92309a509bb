"""Generate files from the declared events: a page, a JSON schema, and JavaScript."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from agents.events.event import OMITTED, Event
from agents.events.event_schema import data_schema, events_schema, field_docs, shapes_of
from agents.events.registry import event_modules, event_types

COMMAND = "make reference"
_INTRO = f"""\
<!-- Generated from the event catalogue by `{COMMAND}`: do not edit. -->

# Events

Everything that happens in a run is an event of its log. You get the same events from the
[REST API](rest-api.md#events), a run's [socket](rest-api.md#a-runs-socket),
[server-sent events](../guides/streams.md) and `vel --json`:

```json
{{
  "run_id": "01kb…", "seq": 7, "type": "text.delta", "ts": "2026-01-31T12:00:00.123Z",
  "data": {{"part_id": "1.0", "text": "Rain "}}
}}
```

`seq` counts the events of a run from 1, without gaps. `data` has the fields below; a field that is
*optional* may be missing. New types and new fields may be added: ignore those that you do not know.
[events.schema.json](events.schema.json) is a JSON schema of all types.

An event is stored in the transaction of the change that it reports. Events marked *streamed* are
collected for 50 ms before they are stored, and a crash may lose them. A later event has everything
that matters.

Inputs, results and error messages of tool calls are cut to about 4,096 bytes: long texts keep the
start and the end. The [tool calls of a run](rest-api.md#runs) have all of it.
"""


def generated_files(root: Path) -> dict[Path, str]:
    """Return the content of each generated file below `root`, the directory of a clone."""
    return {
        root / "docs/reference/events.md": page(),
        root / "docs/reference/events.schema.json": json.dumps(events_schema(), indent=2) + "\n",
        root / "agents/static/agents/web/event_types.js": javascript(),
    }


def javascript() -> str:
    """Return a module with a constant for each event type, such as `RUN_STARTED`."""
    lines = [f'export const {name.upper().replace(".", "_")} = "{name}";' for name in event_types()]
    head = f"// Generated from the event catalogue by `{COMMAND}`: do not edit."
    return "\n".join([head, "", *sorted(lines)]) + "\n"


def page() -> str:
    """Return the documentation of all event types as Markdown."""
    parts = [_INTRO]
    for module in sorted(event_modules(), key=lambda module: module.__name__.rpartition(".")[2]):
        title, _, text = (inspect.getdoc(module) or "").partition(": ")
        parts.append(f"## {title.removesuffix('.')}\n\n{_sentence(text)}\n")
        parts += [_event(declared) for declared in module.EVENTS]
    return "\n".join(parts)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _event(declared: type[Event]) -> str:
    schema = data_schema(declared)
    optional = {
        field.name
        for field in fields(declared)  # type: ignore[arg-type]  # the registry has checked that
        if field.default is OMITTED
    }
    text = inspect.getdoc(declared) or ""
    if not declared.persistent:
        text += " *Streamed.*"
    lines = [f"### `{declared.type}`", "", text, ""]
    lines += _table(schema, field_docs(declared), optional)
    for shape in shapes_of(declared):
        optional = set(getattr(shape, "__optional_keys__", ()))
        definition = schema["$defs"][shape.__name__]
        lines += ["", f"*{shape.__name__}*: {inspect.getdoc(shape)}", ""]
        lines += _table(definition, field_docs(shape), optional)
    return "\n".join(lines) + "\n"


def _table(schema: Mapping[str, Any], docs: Mapping[str, str], optional: set[str]) -> list[str]:
    lines = ["| field | type | |", "|---|---|---|"]
    for name, declared in schema["properties"].items():
        kind = _type(declared) + (", optional" if name in optional else "")
        lines.append(f"| `{name}` | {kind} | {docs[name]} |")
    return lines


def _type(schema: Mapping[str, Any]) -> str:
    """Return a JSON type in a few words, as `list of strings` or `integer or null`."""
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"])
    if "$ref" in schema:
        return f"*{schema['$ref'].rpartition('/')[2]}*"
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    kind = schema.get("type", "any")
    if kind == "array":
        item = _type(schema["items"])
        return f"list of {item}" if item.startswith("*") else f"list of {item}s"
    return str(kind)
