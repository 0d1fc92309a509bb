"""The schemas that the Messages API enforces itself."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from agents.providers.anthropic.provider import output_format, supports_output_format
from agents.structured_output.schema import check_schema
from tests.agents.providers.calls import MODEL, provider_for
from tests.support.messages_api import MessagesServer

PLAIN: dict[str, Any] = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string"},
        "n": {"type": "integer", "minimum": 3},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "list": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
    },
    "required": ["n"],
}
ABLE = {MODEL: {"capabilities": {"structured_outputs": {"supported": True}}}}


def within(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}}


def test_a_plain_schema_is_asked_for_in_its_own_order() -> None:
    wanted = json.loads(output_format(check_schema(PLAIN)))
    assert wanted["type"] == "json_schema"
    schema = wanted["schema"]
    assert list(schema["properties"]) == ["reasoning", "n", "kind", "list"]
    assert schema["additionalProperties"] is False
    assert "minimum" not in schema["properties"]["n"]  # in the prompt; the engine checks it


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "string"}},
        {},
        {"type": "object"},
        within({"type": "object"}),
        within(
            {
                "type": "object",
                "properties": {"b": {"type": "string"}},
                "additionalProperties": True,
            }
        ),
        within({"type": "object", "additionalProperties": {"type": "number"}}),
        within({"type": ["string", "null"]}),
        within({"type": "array"}),
        within({"type": "array", "items": False}),
        within({"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "string"}}),
        within({"allOf": [{"type": "string"}]}),
        within({"type": "string", "anyOf": [{"type": "string"}]}),
        within({"enum": [["a"]]}),
        within({"const": {"a": 1}}),
        within({"minimum": 1}),
        {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(25)}},
        {
            "type": "object",
            "properties": {f"p{n}": {"anyOf": [{"type": "string"}]} for n in range(17)},
            "required": [f"p{n}" for n in range(17)],
        },
    ],
)
def test_schemas_that_the_server_refuses_or_narrows_stay_in_the_prompt(schema: Any) -> None:
    assert output_format(check_schema(schema)) == ""


@pytest.mark.parametrize(
    ("models", "asked"),
    [
        (ABLE, True),
        ({MODEL: {"capabilities": {"structured_outputs": {"supported": False}}}}, False),
        ({MODEL: {"capabilities": None}}, False),
        ({MODEL: {}}, False),
        ({}, False),
    ],
)
def test_the_output_format_is_used_only_if_the_server_supports_it(models: Any, asked: bool) -> None:
    with MessagesServer([], models=models) as server:
        provider = provider_for(server)

        async def twice() -> list[str]:
            found = [await provider.output_format(MODEL, check_schema(PLAIN)) for _ in range(2)]
            await provider.close()
            return found

        first, second = asyncio.run(twice())
    assert first == second
    assert bool(first) == asked
    assert server.models_asked == [MODEL]


def test_a_server_that_is_away_is_not_asked() -> None:
    with MessagesServer([]) as server:
        provider = provider_for(server)
    assert asyncio.run(provider.output_format(MODEL, check_schema(PLAIN))) == ""


@pytest.mark.parametrize(
    "answer", [None, [], {"capabilities": []}, {"capabilities": {"structured_outputs": 1}}]
)
def test_an_odd_answer_is_a_no(answer: Any) -> None:
    assert supports_output_format(answer) is False
