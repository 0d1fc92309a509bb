"""The comparison finds each kind of breaking change, and accepts additions."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.compatibility import documents
from tests.compatibility.changelog import unannounced
from tests.compatibility.schemas import Break
from tests.compatibility.store import without_texts

Document = dict[str, Any]
Change = Callable[[Document], object]

TEXT: Document = {"type": "string"}


def api() -> Document:
    """Return a small OpenAPI document with each part that the comparison reads."""

    def content(name: str) -> Document:
        return {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}

    list_runs = {
        "operationId": "list_runs",
        "security": [{"token": ["read"]}, {"session": []}],
        "parameters": [
            {"in": "query", "name": "limit", "schema": {"type": "integer", "maximum": 200}},
            {"in": "query", "name": "order", "schema": {"enum": ["new", "old"]}},
        ],
        "responses": {
            "200": {"content": content("Run"), "headers": {"ETag": {"schema": TEXT}}},
            "404": {"content": content("Problem")},
        },
    }
    start_run = {
        "operationId": "start_run",
        "requestBody": {"content": content("Start")},
        "responses": {"201": {"content": content("Run")}},
    }
    return {
        "info": {"version": "0.1.0"},
        "paths": {"/runs": {"get": list_runs, "post": start_run}, "/health": {"get": {}}},
        "components": {
            "schemas": {
                "Run": {
                    "type": "object",
                    "properties": {
                        "id": TEXT,
                        "status": {"type": "string", "enum": ["queued", "ended"]},
                        "cost": {"type": "number"},
                        "parent": {"anyOf": [TEXT, {"type": "null"}]},
                        "children": {
                            "type": "array",
                            "items": {"$ref": "#/components/schemas/Run"},
                        },
                    },
                    "required": ["id", "status"],
                },
                "Start": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {
                        "message": {"type": "string", "minLength": 1, "maxLength": 100},
                        "agent": {"anyOf": [TEXT, {"type": "null"}]},
                        "queue": {"type": "string", "enum": ["wait", "refuse"]},
                        "parts": {"type": "array", "items": TEXT},
                    },
                    "required": ["message"],
                },
                "Problem": {"type": "object", "properties": {"code": TEXT}},
            }
        },
    }


def given(document: Document) -> Document:
    return document["components"]["schemas"]["Run"]


def accepted(document: Document) -> Document:
    return document["components"]["schemas"]["Start"]


def get(document: Document) -> Document:
    return document["paths"]["/runs"]["get"]


def post(document: Document) -> Document:
    return document["paths"]["/runs"]["post"]


BREAKING: list[tuple[str, Change]] = [
    ("/health: removed", lambda d: d["paths"].pop("/health")),
    ("POST /runs: removed", lambda d: d["paths"]["/runs"].pop("post")),
    ("GET /runs: operationId", lambda d: get(d).update(operationId="runs")),
    ("GET /runs limit: query parameter removed", lambda d: get(d)["parameters"].pop(0)),
    ("GET /runs limit: now required", lambda d: get(d)["parameters"][0].update(required=True)),
    (
        "GET /runs limit: maximum became 100",
        lambda d: get(d)["parameters"][0]["schema"].update(maximum=100),
    ),
    (
        'GET /runs order: the value "old" is no longer accepted',
        lambda d: get(d)["parameters"][1]["schema"]["enum"].remove("old"),
    ),
    (
        "GET /runs since: new required parameter",
        lambda d: get(d)["parameters"].append({"in": "query", "name": "since", "required": True}),
    ),
    (
        "GET /runs: a token with the scope read no longer suffices",
        lambda d: get(d).update(security=[{"token": ["manage"]}, {"session": []}]),
    ),
    (
        "GET /runs: a session no longer suffices",
        lambda d: get(d).update(security=[{"token": ["read"]}]),
    ),
    ("GET /runs 200: removed", lambda d: get(d)["responses"].pop("200")),
    (
        "GET /runs 200: the header ETag was removed",
        lambda d: get(d)["responses"]["200"].pop("headers"),
    ),
    (
        "POST /runs 201: application/json is no longer sent",
        lambda d: post(d)["responses"]["201"]["content"].clear(),
    ),
    ("POST /runs body: removed", lambda d: post(d).pop("requestBody")),
    ("POST /runs body: now required", lambda d: post(d)["requestBody"].update(required=True)),
    (
        "POST /runs body: application/json is no longer accepted",
        lambda d: post(d)["requestBody"]["content"].clear(),
    ),
    ("Run.id: removed", lambda d: given(d)["properties"].pop("id")),
    ("Run.status: no longer always present", lambda d: given(d)["required"].remove("status")),
    (
        "Run.id: type string became integer",
        lambda d: given(d)["properties"]["id"].update(type="integer"),
    ),
    (
        "Run.id: the type null is new",
        lambda d: given(d)["properties"].update(id={"anyOf": [TEXT, {"type": "null"}]}),
    ),
    (
        "Run.id: the type null is new",
        lambda d: given(d)["properties"].update(id={"type": ["string", "null"]}),
    ),
    (
        "Run.children[]: type object became string",
        lambda d: given(d)["properties"]["children"].update(items=TEXT),
    ),
    ("Start.queue: removed", lambda d: accepted(d)["properties"].pop("queue")),
    ("Start.agent: now required", lambda d: accepted(d)["required"].append("agent")),
    (
        "Start.reason: now required",
        lambda d: (
            accepted(d)["properties"].update(reason=TEXT),
            accepted(d)["required"].append("reason"),
        ),
    ),
    (
        "Start.message: maxLength became 50, it was 100",
        lambda d: accepted(d)["properties"]["message"].update(maxLength=50),
    ),
    (
        "Start.message: minLength became 2, it was 1",
        lambda d: accepted(d)["properties"]["message"].update(minLength=2),
    ),
    (
        "Start.message: pattern became ^a, it was None",
        lambda d: accepted(d)["properties"]["message"].update(pattern="^a"),
    ),
    (
        "Start.agent: the type null is no longer accepted",
        lambda d: accepted(d)["properties"].update(agent=TEXT),
    ),
    (
        'Start.queue: the value "wait" is no longer accepted',
        lambda d: accepted(d)["properties"]["queue"]["enum"].remove("wait"),
    ),
    (
        'Start.message: only ["a"] are accepted now',
        lambda d: accepted(d)["properties"]["message"].update(enum=["a"]),
    ),
    (
        "Start.parts[]: type string became integer",
        lambda d: accepted(d)["properties"]["parts"].update(items={"type": "integer"}),
    ),
    (
        "Start.parts: items must be unique now",
        lambda d: accepted(d)["properties"]["parts"].update(uniqueItems=True),
    ),
]

HARMLESS: list[tuple[str, Change]] = [
    ("a new path", lambda d: d["paths"].update({"/more": {"get": {}}})),
    ("a new method", lambda d: d["paths"]["/runs"].update({"delete": {}})),
    (
        "a new parameter",
        lambda d: get(d)["parameters"].append({"in": "query", "name": "since", "schema": TEXT}),
    ),
    ("a new field in responses", lambda d: given(d)["properties"].update(more=TEXT)),
    ("a new value in responses", lambda d: given(d)["properties"]["status"]["enum"].append("new")),
    (
        "a narrower type in responses",
        lambda d: given(d)["properties"]["cost"].update(type="integer"),
    ),
    ("never null in responses", lambda d: given(d)["properties"].update(parent=TEXT)),
    ("always present", lambda d: given(d)["required"].append("cost")),
    ("a new field in requests", lambda d: accepted(d)["properties"].update(more=TEXT)),
    ("a new value in requests", lambda d: accepted(d)["properties"]["queue"]["enum"].append("now")),
    ("an optional field", lambda d: accepted(d)["required"].remove("message")),
    ("a higher limit", lambda d: accepted(d)["properties"]["message"].update(maxLength=200)),
    ("no limit", lambda d: accepted(d)["properties"]["message"].pop("maxLength")),
    (
        "a new type in requests",
        lambda d: accepted(d)["properties"].update(
            parts={"anyOf": [{"type": "array", "items": TEXT}, TEXT]}
        ),
    ),
    ("fewer scopes", lambda d: get(d).update(security=[{"token": []}, {"session": []}])),
    ("another error", lambda d: get(d)["responses"].pop("404")),
]


def changed_by(change: Change) -> Document:
    """Return the API after a change. It shares no part with another, as `TEXT` would be."""
    new: Document = json.loads(json.dumps(api()))
    change(new)
    return new


@pytest.mark.parametrize(("expected", "change"), BREAKING, ids=[name for name, _ in BREAKING])
def test_a_breaking_change_of_the_rest_api_is_found(expected: str, change: Change) -> None:
    new = changed_by(change)
    (found,) = documents.rest_api(api(), new)
    assert str(found).startswith(expected)


@pytest.mark.parametrize(("name", "change"), HARMLESS, ids=[name for name, _ in HARMLESS])
def test_an_addition_to_the_rest_api_is_no_break(name: str, change: Change) -> None:
    new = changed_by(change)
    assert new != api(), f"{name} changes nothing"
    assert documents.rest_api(api(), new) == []


def event_catalogue() -> Document:
    return {
        "type": "object",
        "properties": {"seq": {"type": "integer"}, "type": TEXT, "data": {"type": "object"}},
        "required": ["seq", "type", "data"],
        "oneOf": [
            {"properties": {"type": {"const": name}, "data": {"$ref": f"#/$defs/{definition}"}}}
            for name, definition in (("run.started", "Started"), ("run.ended", "Ended"))
        ],
        "$defs": {
            "Started": {"type": "object", "properties": {"by": TEXT}, "required": ["by"]},
            "Ended": {"type": "object", "properties": {"turns": {"type": "integer"}}},
        },
    }


EVENTS: list[tuple[str, Change]] = [
    ("run.ended: removed", lambda d: d["oneOf"].pop()),
    ("run.started.by: removed", lambda d: d["$defs"]["Started"]["properties"].pop("by")),
    ("run.started.by: no longer always present", lambda d: d["$defs"]["Started"].pop("required")),
    (
        "run.ended.turns: type integer became number",
        lambda d: d["$defs"]["Ended"]["properties"]["turns"].update(type="number"),
    ),
    ("event.seq: removed", lambda d: d["properties"].pop("seq")),
]


@pytest.mark.parametrize(("expected", "change"), EVENTS, ids=[name for name, _ in EVENTS])
def test_a_breaking_change_of_an_event_is_found(expected: str, change: Change) -> None:
    new = event_catalogue()
    change(new)
    assert [str(one) for one in documents.events(event_catalogue(), new)] == [expected]


def test_a_new_event_and_a_new_field_are_no_break() -> None:
    new = event_catalogue()
    new["$defs"]["Started"]["properties"]["more"] = TEXT
    new["oneOf"].append({"properties": {"type": {"const": "run.new"}, "data": {"type": "object"}}})
    assert documents.events(event_catalogue(), new) == []


def test_a_renamed_definition_of_an_event_is_no_break() -> None:
    new = event_catalogue()
    new["$defs"]["RunStarted"] = new["$defs"].pop("Started")
    new["oneOf"][0]["properties"]["data"]["$ref"] = "#/$defs/RunStarted"
    assert documents.events(event_catalogue(), new) == []


def agent_schema() -> Document:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {"name": TEXT, "rules": {"type": "array", "items": {"$ref": "#/$defs/Rule"}}},
        "required": ["name"],
        "$defs": {"Rule": {"type": "object", "properties": {"tool": TEXT}}},
    }


AGENTS: list[tuple[str, Change]] = [
    ("agent file.name: removed", lambda d: d["properties"].pop("name")),
    ("agent file.rules: now required", lambda d: d["required"].append("rules")),
    (
        "Rule.tool: maxLength became 9, it was None",
        lambda d: d["$defs"]["Rule"]["properties"].update(tool={"type": "string", "maxLength": 9}),
    ),
    (
        "Rule: other fields are no longer accepted",
        lambda d: d["$defs"]["Rule"].update(additionalProperties=False),
    ),
]


@pytest.mark.parametrize(("expected", "change"), AGENTS, ids=[name for name, _ in AGENTS])
def test_a_breaking_change_of_agent_files_is_found(expected: str, change: Change) -> None:
    new = agent_schema()
    change(new)
    assert [str(one) for one in documents.agent_file(agent_schema(), new)] == [expected]


def test_a_field_that_is_new_for_agent_files_is_no_break() -> None:
    new = agent_schema()
    new["properties"]["more"] = TEXT
    assert documents.agent_file(agent_schema(), new) == []


def test_texts_for_people_are_not_compared_but_fields_of_the_same_names_are() -> None:
    schema = {"description": "A run.", "properties": {"title": {"title": "T", "type": "string"}}}
    assert without_texts(schema) == {"properties": {"title": TEXT}}


CHANGELOG = """# Changelog

## [0.2.0] - unreleased

### Added

- `Run.other`, a field.

### Breaking changes

- `Run.id` was removed: use `key`.

## [0.1.0] - 2026-12-01

### Breaking changes

- `Run.old`
"""


def test_only_breaks_named_since_the_last_release_are_announced() -> None:
    breaks = [Break(f"Run.{name}", "removed") for name in ("id", "other", "old")]
    assert unannounced(breaks, CHANGELOG, "0.1.0") == [
        "Run.other: removed",
        "Run.old: removed",
    ]


def test_a_baseline_before_its_release_has_its_own_section() -> None:
    text = CHANGELOG.replace("2026-12-01", "unreleased")
    assert unannounced([Break("Run.old", "removed")], text, "0.1.0") == []
