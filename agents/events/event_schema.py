"""JSON schemas of the declared events, made from their classes."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator
from dataclasses import fields
from functools import reduce
from operator import or_
from textwrap import dedent
from typing import Any, NotRequired, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict, is_typeddict

from agents.events.event import OMITTED, Event, InvalidEvent, Omitted
from agents.events.registry import event_types

Schema = dict[str, Any]

DESCRIPTION = """\
An event of a run's log, as the REST API, the sockets, the event streams and `--json` give it. New \
types and new fields may be added: ignore those that you do not know."""


def events_schema() -> Schema:
    """Return the JSON schema of all events, as clients get them."""
    definitions: Schema = {}
    cases = []
    for name, declared in sorted(event_types().items()):
        schema = data_schema(declared)
        definitions |= schema.pop("$defs", {})
        definitions[declared.__name__] = schema
        data = {"$ref": f"#/$defs/{declared.__name__}"}
        cases.append({"properties": {"type": {"const": name}, "data": data}})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Event",
        "description": DESCRIPTION,
        "type": "object",
        "properties": {
            "run_id": {
                "type": "string",
                "description": "The run. Missing where the answer names the run once.",
            },
            "seq": {
                "type": "integer",
                "minimum": 1,
                "description": "The position in the log of the run, from 1, without gaps.",
            },
            "type": {"type": "string", "description": "The event type."},
            "ts": {
                "type": "string",
                "format": "date-time",
                "description": "When it was written, in UTC with milliseconds.",
            },
            "data": {"type": "object", "description": "The fields of the event type."},
        },
        "required": ["seq", "type", "ts", "data"],
        "oneOf": cases,
        "$defs": dict(sorted(definitions.items())),
    }


def data_schema(declared: type[Event]) -> Schema:
    """Return the JSON schema of the data of one event type, with the shapes it uses in `$defs`."""
    schema: Schema = _adapter(declared).json_schema()
    _remove_titles(schema)
    schema["description"] = inspect.getdoc(declared)
    _describe(schema, declared)
    shapes = {shape.__name__: shape for shape in shapes_of(declared)}
    for name, definition in schema.get("$defs", {}).items():
        _describe(definition, shapes[name])
    return schema


def check_data(declared: type[Event], text: str) -> None:
    """Raise `InvalidEvent` if `text`, the JSON of some data, does not match the declared fields."""
    # Half a character is valid in the log; pydantic refuses it.
    whole = json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8", "replace")
    try:
        known = _adapter(declared).validate_json(whole, strict=True)
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
        raise InvalidEvent(f"{declared.type}: {'; '.join(problems)}.") from None
    if known != (given := json.loads(whole)):
        raise InvalidEvent(
            f"{declared.type}: fields are not declared: of {given} the class knows {known}."
        )


def shapes_of(declared: type[Event]) -> list[type]:
    """Return the typed dictionaries that the fields of an event type use."""
    found: list[type] = []
    for hint in get_type_hints(declared, include_extras=True).values():
        found += [shape for shape in _shapes_in(hint) if shape not in found]
    return found


def _shapes_in(hint: Any) -> Iterator[type]:
    if is_typeddict(hint):
        yield hint
        for inner in get_type_hints(hint, include_extras=True).values():
            yield from _shapes_in(inner)
    for argument in get_args(hint):
        yield from _shapes_in(argument)


_adapters: dict[type[Event], TypeAdapter[Any]] = {}


def _adapter(declared: type[Event]) -> TypeAdapter[Any]:
    if declared not in _adapters:
        _adapters[declared] = TypeAdapter(_dictionary_of(declared))
    return _adapters[declared]


def _dictionary_of(declared: type[Event]) -> type:
    """Return a typed dictionary with the fields of the class: of these some can be missing."""
    hints = get_type_hints(declared, include_extras=True)
    content: dict[str, Any] = {}
    for field in fields(declared):  # type: ignore[arg-type]  # the registry has checked that
        hint = hints[field.name]
        if field.default is OMITTED:
            kinds = [kind for kind in get_args(hint) or (hint,) if kind is not Omitted]
            hint = NotRequired[reduce(or_, kinds)]
        content[field.name] = hint
    made: type = TypedDict(declared.__name__, content)  # type: ignore[misc]  # not a literal
    return made


def _remove_titles(schema: Any) -> None:
    """Take out the titles that pydantic makes of the names."""
    if isinstance(schema, dict):
        if isinstance(schema.get("title"), str):
            del schema["title"]
        for value in schema.values():
            _remove_titles(value)
    elif isinstance(schema, list):
        for value in schema:
            _remove_titles(value)


def _describe(schema: Schema, declared: type) -> None:
    for name, text in field_docs(declared).items():
        schema["properties"][name]["description"] = text


def field_docs(declared: type) -> dict[str, str]:
    """Return the docstrings of the fields of a class, in one line each."""
    (tree,) = ast.parse(dedent(inspect.getsource(declared))).body
    assert isinstance(tree, ast.ClassDef)
    names = [name for name in declared.__annotations__ if not _is_class_variable(declared, name)]
    found: dict[str, str] = {}
    for statement, after in zip(tree.body, tree.body[1:], strict=False):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and statement.target.id in names
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
            and isinstance(after.value.value, str)
        ):
            found[statement.target.id] = " ".join(after.value.value.split())
    return found


def _is_class_variable(declared: type, name: str) -> bool:
    return "ClassVar" in str(declared.__annotations__[name])
