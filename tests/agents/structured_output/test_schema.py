"""Accepted schemas, and the limited cost of their checks."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from agents.structured_output.schema import FORMATS, MAX_BYTES, SchemaRefused, check_schema
from agents.structured_output.validation import problems_in

UUID = "12345678-1234-1234-1234-123456789abc"
TREE = {"items": {"$ref": "#/$defs/A"}}
DAG: dict[str, Any] = {
    "$ref": "#/$defs/a0",
    "$defs": {
        **{f"a{level}": {"anyOf": [{"$ref": f"#/$defs/a{level + 1}"}] * 8} for level in range(6)},
        "a6": {"type": "string"},
    },
}


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"items": schema}
    return schema


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ([], "Give a JSON Schema as an object"),
        ({"type": "strng"}, r"^\$\.type must be one of"),
        ({"type": []}, "must be one of"),
        ({"properties": {"a": {"type": ["string", "x"]}}}, r"^\$\.properties\.a\.type"),
        ({"properties": []}, "must be an object of schemas"),
        ({"items": [{}]}, "must be a schema"),
        ({"anyOf": []}, "must be a list of schemas"),
        ({"anyOf": [True]}, r"^\$\.anyOf\[0\] must be a schema"),
        ({"not": {}}, "has 'not', which is not checked here"),
        ({"patternProperties": {"a": {}}}, "has 'patternProperties'"),
        ({"$id": "http://example.org"}, "has '\\$id'"),
        ({"$dynamicRef": "#x"}, "has '\\$dynamicRef'"),
        ({"$ref": "https://example.org/schema.json"}, "must be of the form"),
        ({"$ref": "file:///etc/passwd"}, "must be of the form"),
        ({"$ref": "#"}, "must be of the form"),
        ({"$ref": "#/$defs/A"}, "leads to nothing"),
        ({"$ref": "#/$defs/A", "$defs": {"A": {}}, "type": "string"}, "next to \\$ref"),
        ({"$ref": "#/$defs/A", "$defs": {"A": TREE}}, "leads back to itself"),
        (DAG, "too large"),
        (nested(17), "more than 16 levels"),
        (nested(3000), "nests too deeply|more than 16 levels|bytes"),
        ({"pattern": r"(a)\1"}, "RE2 takes: invalid escape"),
        ({"pattern": "(?=a)"}, "RE2 takes"),
        ({"pattern": "((a{1,100}){1,100}){1,100}"}, "RE2 takes"),
        ({"pattern": "a" * 501}, "at most 500"),
        ({"format": "hostname"}, "others are not checked"),
        ({"enum": []}, "1 to 500"),
        ({"enum": list(range(501))}, "1 to 500"),
        ({"required": "a"}, "a list of names"),
        ({"minLength": -1}, "0 or more"),
        ({"minLength": True}, "0 or more"),
        ({"maximum": "1"}, "must be a number"),
        ({"multipleOf": 0}, "more than 0"),
        ({"uniqueItems": 1}, "true or false"),
        ({"description": "x" * MAX_BYTES}, "may have 16,384"),
        ({"maximum": float("nan")}, "not JSON"),
        ({"description": "\ud800"}, "not JSON"),
    ],
)
def test_unsupported_schemas_are_refused_with_their_place(schema: Any, told: str) -> None:
    with pytest.raises(SchemaRefused, match=told) as refused:
        check_schema(schema)
    assert len(str(refused.value)) < 1000


def test_references_are_expanded_and_notes_for_authors_removed() -> None:
    money = {"type": "number", "minimum": 0, "description": "Dollars."}
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "a": {"$ref": "#/$defs/Money"},
            "b": {"$ref": "#/definitions/Money", "description": "What is left."},
        },
        "$defs": {"Money": money},
        "definitions": {"Money": money},
    }
    read = check_schema(schema)
    assert read == {
        "type": "object",
        "properties": {"a": money, "b": {**money, "description": "What is left."}},
    }


# A random schema, and a value that often nearly fits it.
leaves = st.sampled_from(
    [
        {"type": "string", "minLength": 1, "maxLength": 3},
        {"type": ["integer", "null"], "minimum": 0},
        {"type": "number", "exclusiveMaximum": 2},
        {"enum": ["a", 1, True, None, [1]]},
        {"const": 1},
        {"type": "boolean"},
        {"type": "string", "pattern": "^a+b?$"},
        {},
    ]
)
names = st.sampled_from(["a", "b"])
schemas = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(names, inner)},
            optional={
                "required": st.lists(names, unique=True),
                "additionalProperties": st.one_of(st.booleans(), inner),
                "maxProperties": st.integers(0, 2),
            },
        ),
        st.fixed_dictionaries(
            {"type": st.just("array"), "items": st.one_of(inner, st.just(False))},
            optional={
                "uniqueItems": st.booleans(),
                "minItems": st.integers(0, 2),
                "prefixItems": st.lists(inner, min_size=1, max_size=2),
            },
        ),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"oneOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"allOf": st.lists(inner, min_size=1, max_size=2)}),
    ),
    max_leaves=6,
)
values = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 1.0, -1, 0.5, 2, "", "a", "aab", "long text"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["a", "b", "c"]), inner)
    ),
    max_leaves=6,
)


@pytest.mark.slow
@given(schemas, values)
def test_the_verdict_is_that_of_the_standard(schema: dict[str, Any], value: Any) -> None:
    fits = Draft202012Validator(schema).is_valid(value)
    problems = problems_in(value, check_schema(schema))
    assert (not problems) == fits
    for problem in problems:
        assert 0 < len(problem.message) <= 200
        assert problem.path.startswith("$")


@pytest.mark.slow
@given(
    st.one_of(values, st.dictionaries(st.sampled_from(["type", "items", "$ref", "anyOf"]), values))
)
def test_any_schema_is_accepted_or_refused_with_a_reason(schema: Any) -> None:
    try:
        read = check_schema(schema)
    except SchemaRefused:
        return
    Draft202012Validator.check_schema(read)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (
            {"items": {"anyOf": [{"type": "object", "maxProperties": n} for n in range(99)]}},
            [1] * 50_000,
        ),
        ({"allOf": [{"items": {"pattern": "^(x+x+)+y$"}}] * 300}, ["x" * 120_000] * 2),
        ({"uniqueItems": True}, [[number] for number in range(40_000)]),
        ({"items": {"enum": list(range(500))}}, [-1.5] * 60_000),
        ({"items": {"enum": list(range(500))}}, [499] * 60_000),
        ({"items": {"oneOf": [{"type": "integer"}] * 300}}, [1] * 60_000),
        ({"additionalProperties": {"multipleOf": 0.1}}, {str(n): n / 10 for n in range(20_000)}),
    ],
)
def test_no_pair_of_a_schema_and_an_answer_takes_long(schema: Any, value: Any) -> None:
    read = check_schema(schema)
    started = time.thread_time()
    problems = problems_in(value, read)
    assert time.thread_time() - started < 5
    assert len(json.dumps([str(problem) for problem in problems])) < 5_000


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date", ["2026-02-28"], ["2026-02-29", "2026-2-8", "20260228", "２026-02-28", ""]),
        ("time", ["10:00:00Z", "10:00:00.5+02:00"], ["25:00:00Z", "10:00", "10:00:00"]),
        ("date-time", ["2026-02-28T10:00:00Z", "2026-02-28t10:00:00.1234567z"], ["2026-02-28", ""]),
        ("email", ["a@b.org"], ["a b@c.org", "@b.org", "a@b..org"]),
        ("uri", ["https://a.org/x?y#z", "mailto:a@b.org"], ["a.org", "https://a b", ""]),
        ("uuid", [UUID], ["1234", f"g{UUID[1:]}"]),
        ("ipv4", ["127.0.0.1"], ["127.0.0.256", "1", "::1"]),
        ("ipv6", ["::1"], ["127.0.0.1", "fe80::1%eth0"]),
    ],
)
def test_formats(name: str, good: list[str], bad: list[str]) -> None:
    assert [text for text in good if not FORMATS[name](text)] == []
    assert [text for text in bad if FORMATS[name](text)] == []


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"n": "3"}, '$.n: must be of type integer or null, got "3"'),
        ({}, "$: lacks n, m"),
        ({"n": 1, "m": 0, "x": 1, "y": 2}, "$: may not have x, y"),
        ({"n": 1, "m": 7}, "$.m: must be one of [0, 1], got 7"),
        (
            {"n": 1, "m": 0, "l": [{"k": True}]},
            "$.l[0]: does not fit any of the 2 alternatives; nearest: $.",
        ),
        ({"n": 1, "m": 0, "l": ["x" * 500]}, "$.l[0]: does not fit any of the 2 alternatives; "),
        ({"n": 1, "m": 0, "l": [3, 3]}, "$.l: holds the same item twice"),
        ({"n": 1, "m": 0, "d": "x"}, '$.d: must have format "date", got "x"'),
        ({"n": 1, "m": 0, "z": 1}, "$.z: must be of type string, got 1"),
        ({"n": 1, "m": 0, "e": [1]}, "$.e: may have no further items"),
    ],
)
def test_problems_are_reported_briefly_with_their_place(value: Any, told: str) -> None:
    schema = check_schema(
        {
            "type": "object",
            "properties": {
                "n": {"type": ["integer", "null"]},
                "m": {"enum": [0, 1]},
                "l": {
                    "uniqueItems": True,
                    "items": {
                        "anyOf": [
                            {"type": "integer"},
                            {"type": "object", "properties": {"k": {"type": "string"}}},
                        ]
                    },
                },
                "d": {"format": "date"},
                "e": {"items": False},
                "z": {"allOf": [{"type": "string"}]},
            },
            "required": ["n", "m"],
            "additionalProperties": False,
        }
    )
    problems = [str(problem) for problem in problems_in(value, schema)]
    assert any(problem.startswith(told) for problem in problems), problems
    assert all(len(problem) < 450 for problem in problems)
