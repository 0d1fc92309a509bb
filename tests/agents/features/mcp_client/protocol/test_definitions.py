"""The accepted parts of a server's tool list, and the content of a digest."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from pydantic import ValidationError

from agents.features.mcp_client.protocol.definitions import LONGEST, offered_name, read_listing
from agents.features.mcp_client.protocol.errors import McpError
from agents.features.mcp_client.protocol.input_schema import (
    SchemaUnusable,
    input_model,
    usable_schema,
)
from agents.features.mcp_client.protocol.results import File, read_answer
from agents.middleware.wire_schema import wire_schema
from agents.structured_output.schema import check_schema
from tests.support.pictures import png


def tool(name: str = "say", **changed: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return {"name": name, "description": "Says it.", "inputSchema": schema, **changed}


def one(**changed: Any) -> str:
    (found,) = read_listing("s", [tool(**changed)]).tools
    return found.digest


def why_not(**changed: Any) -> str:
    listing = read_listing("s", [tool(**changed)])
    assert not listing.tools
    return listing.refused[0][1]


def test_a_digest_covers_the_whole_definition() -> None:
    schema = {"type": "object", "properties": {"text": {"type": "string", "title": "T"}}}
    hints = {"readOnlyHint": True}
    said = {
        one(),
        one(description="Says it. "),
        one(description="Says\u200b it."),
        one(inputSchema=schema),
        one(annotations=hints),
        one(title="Say"),
    }
    assert len(said) == 6
    assert one(_meta={"x": 1}, outputSchema={}) == one()


def test_the_digest_of_a_list_knows_no_order_but_every_tool() -> None:
    two = read_listing("s", [tool("a"), tool("b")])
    assert two.digest == read_listing("s", [tool("b"), tool("a")]).digest
    assert two.digest != read_listing("s", [tool("a")]).digest


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"name": ""}, "its name"),
        ({"name": "a" * 129}, "its name"),
        ({"name": "a\nb"}, "its name"),
        ({"name": "\u202ea"}, "its name"),
        ({"description": 7}, "is not text"),
        ({"description": "x\x00"}, "NUL"),
        ({"description": "x\ud800"}, "half of a character"),
        ({"inputSchema": {"type": "string"}}, "JSON Schema of an object"),
        ({"inputSchema": []}, "JSON Schema of an object"),
        ({"inputSchema": {"x": float("nan")}}, "not JSON"),
        ({"inputSchema": {"x": "y" * 17_000}}, "16,384 bytes"),
        ({"annotations": {"x": "y" * 3_000}}, "bytes"),
    ],
)
def test_definitions_that_cannot_be_stored_or_shown_are_refused_with_a_reason(
    changed: dict[str, Any], told: str
) -> None:
    assert told in why_not(**changed)


def test_all_descriptions_together_have_a_limit() -> None:
    with pytest.raises(McpError, match="200,000 bytes"):
        read_listing("s", [tool(f"t{n}", description="x" * 7_000) for n in range(40)])


def test_names_fit_models_and_are_never_the_same_for_two_tools() -> None:
    said = ["a.b", "a_b", "a/b", "x" * 64, "x" * 65, "ä", "read_file", "a b"]
    names = [offered_name("my-server", each) for each in said]
    assert len(set(names)) == len(names)
    assert all(len(name) <= LONGEST and name.isascii() and " " not in name for name in names)
    assert offered_name("time", "now") == "mcp__time__now"
    assert all(name.startswith("mcp__my-server__") for name in names)


HARD = {
    "type": "object",
    "title": "Arguments",
    "$defs": {
        "Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}},
        "Kind": {"enum": ["a", "b"]},
    },
    "properties": {
        "kind": {"$ref": "#/$defs/Kind", "description": "Which."},
        "node": {"$ref": "#/$defs/Node"},
        "away": {"$ref": "https://evil.example/schema"},
        "slow": {"type": "string", "pattern": "(a+)+$"},
        "back": {"type": "string", "pattern": r"(a)\1"},
        "url": {"type": "string", "format": "uri-of-some-kind"},
        "title": {"type": "string"},
        "timeout": {"type": "number", "minimum": 0},
    },
    "patternProperties": {"^x": {}},
    "if": {},
    "required": ["kind"],
}


def test_any_schema_becomes_one_with_a_known_cost() -> None:
    usable = usable_schema(HARD)
    check_schema(usable)
    assert usable["properties"]["kind"] == {"enum": ["a", "b"], "description": "Which."}
    assert usable["properties"]["node"]["properties"]["next"] == {}
    assert usable["properties"]["away"] == {}
    assert usable["properties"]["back"] == {"type": "string"}
    assert "patternProperties" not in usable


def test_the_model_sees_the_schema_and_inputs_are_checked_by_it() -> None:
    model = input_model("mcp__s__t", json.dumps(usable_schema(HARD)))
    shown = wire_schema(model)
    assert list(shown["properties"])[:2] == ["kind", "node"]
    assert shown["required"] == ["kind"]
    given = {"kind": "a", "timeout": 3, "model_dump": 1, "copy": 2, "_x": 3}
    assert model.model_validate(given).model_extra == given
    for wrong in ({}, {"kind": "c"}, {"kind": "a", "timeout": -1}, [], "x"):
        with pytest.raises(ValidationError):
            model.model_validate(wrong)


def test_a_schema_that_explodes_is_refused() -> None:
    bomb: dict[str, Any] = {"type": "object", "$defs": {}}
    for level in range(10):
        inner = {"$ref": f"#/$defs/l{level + 1}"}
        bomb["$defs"][f"l{level}"] = {"properties": dict.fromkeys("abcd", inner)}
    bomb["properties"] = {"a": {"$ref": "#/$defs/l0"}}
    with pytest.raises(SchemaUnusable, match="over 500 parts"):
        usable_schema(bomb)


def test_answers_become_texts_pictures_and_files() -> None:
    picture = base64.b64encode(png(2, 2)).decode()
    content = [
        {"type": "text", "text": '{"a": 1}'},
        {"type": "image", "data": picture, "mimeType": "image/png"},
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        {"type": "image", "data": "%%%", "mimeType": "image/jpeg"},
        {"type": "audio", "data": "AAAA", "mimeType": "../../etc/passwd"},
        {"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}},
        {"type": "resource", "resource": {"uri": "file:///b", "blob": "AAAA"}},
        {"type": "resource_link", "name": "n", "uri": "file:///c"},
    ]
    answer = read_answer({"content": content, "structuredContent": {"a": 1}}, pictures=True)
    text, shown, broken, unreadable, sound, inside, blob, link = answer.parts
    assert text == '{"a": 1}'  # only once
    assert isinstance(shown, bytes)
    assert shown.startswith(b"\x89PNG")
    assert isinstance(broken, File)
    assert (broken.kind, broken.ending) == ("image", "png")
    assert unreadable == "[a image that cannot be read]"
    assert isinstance(sound, File)
    assert (sound.kind, sound.ending) == ("audio", "bin")
    assert inside == "[resource file:///a]\ninside"
    assert isinstance(blob, File)
    assert blob.data == b"\x00\x00\x00"
    assert link == "[resource n: file:///c]"
    unseen = read_answer({"content": content[1:2], "structuredContent": {"b": 2}}, pictures=False)
    assert isinstance(unseen.parts[0], File)
    assert unseen.parts[1] == '{"b": 2}'
    deep: Any = 1
    for _ in range(400):
        deep = [deep]
    answer = read_answer({"structuredContent": {"a": deep}}, pictures=False)
    assert answer.parts == ["[structured content that nests deeper than 64 levels]"]
