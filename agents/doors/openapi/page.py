"""The OpenAPI document as a page: the context of the template."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_METHODS = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter, or a field of a body or a response. `kind` is its type in words."""

    name: str
    kind: str
    required: bool
    description: str


@dataclass(frozen=True, slots=True)
class Form:
    """A body or a response. `title` is its status or media type; `refers` lists components."""

    title: str
    media_type: str
    refers: list[str]
    example: str


@dataclass(frozen=True, slots=True)
class Endpoint:
    name: str
    method: str
    path: str
    summary: str
    description: str
    parameters: list[Field]
    bodies: list[Form]
    answers: list[Form]


@dataclass(frozen=True, slots=True)
class Component:
    name: str
    description: str
    fields: list[Field]


@dataclass(frozen=True, slots=True)
class DocsPage:
    title: str
    version: str
    introduction: list[str]
    server: str
    groups: list[tuple[str, list[Endpoint]]]
    components: list[Component]


def docs_page(document: dict[str, Any]) -> DocsPage:
    groups: dict[str, list[Endpoint]] = {}
    for path, item in document["paths"].items():
        for method in _METHODS:
            if method in item:
                groups.setdefault(item[method]["tags"][0], []).append(
                    _endpoint(document, path, method, item[method])
                )
    info = document["info"]
    return DocsPage(
        title=info["title"],
        version=info["version"],
        introduction=_plain(info["description"]).split("\n\n"),
        server=document["servers"][0]["url"],
        groups=list(groups.items()),
        components=[
            Component(name, _plain(schema.get("description", "")), list(_fields(schema)))
            for name, schema in document["components"]["schemas"].items()
        ],
    )


def _endpoint(
    document: dict[str, Any], path: str, method: str, operation: dict[str, Any]
) -> Endpoint:
    return Endpoint(
        name=operation["operationId"],
        method=method.upper(),
        path=path,
        summary=operation["summary"],
        description=_plain(operation["description"]),
        parameters=[
            Field(
                f"{each['name']}",
                f"{kind_of(each['schema'])} in {each['in']}",
                bool(each.get("required")),
                _plain(each.get("description", "")),
            )
            for each in operation.get("parameters", [])
        ],
        bodies=list(_forms("", operation.get("requestBody", {}))),
        answers=[
            form
            for status, answer in operation["responses"].items()
            for form in _forms(status, _resolved(document, answer))
        ],
    )


def _plain(markdown: str) -> str:
    """Return the text without code marks, for a page of plain text."""
    return markdown.replace("`", "")


def _forms(title: str, said: dict[str, Any]) -> Iterator[Form]:
    content = said.get("content") or ({"": {}} if title else {})
    described = f"{title} {said.get('description', '')}".strip()
    for media_type, form in content.items():
        example = form.get("example")
        if example is None:
            example = next((each["value"] for each in form.get("examples", {}).values()), None)
        shown = "" if example is None else json.dumps(example, indent=2, ensure_ascii=False)
        # All problems have the same form: the statuses are enough.
        is_problem = media_type == "application/problem+json"
        yield Form(
            described,
            media_type,
            [] if is_problem else sorted(set(_references(form.get("schema", {})))),
            "" if is_problem else shown,
        )


def _fields(schema: dict[str, Any]) -> Iterator[Field]:
    required = schema.get("required", [])
    for name, field in schema.get("properties", {}).items():
        yield Field(name, kind_of(field), name in required, _plain(field.get("description", "")))


def kind_of(schema: dict[str, Any]) -> str:
    """Describe a schema in a few words, such as `list of Run`, `string or null`, `one of a, b`."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    for many in ("oneOf", "anyOf", "allOf"):
        if many in schema:
            return " or ".join(kind_of(each) for each in schema[many])
    if "enum" in schema:
        return "one of " + ", ".join(json.dumps(each) for each in schema["enum"])
    kind = schema.get("type", "any JSON")
    words = " or ".join(kind) if isinstance(kind, list) else str(kind)
    if "items" in schema:
        return f"list of {kind_of(schema['items'])}"
    return f"{words} ({schema['format']})" if "format" in schema else words


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield str(schema["$ref"]).rpartition("/")[2]
        for each in schema.values():
            yield from _references(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from _references(each)


def _resolved(document: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in answer:
        return answer
    found: dict[str, Any] = document["components"]["responses"][answer["$ref"].rpartition("/")[2]]
    return found
