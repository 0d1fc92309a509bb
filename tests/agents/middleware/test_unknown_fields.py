"""Fields of an edited input that are unknown to the tool."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from agents.custom.json_schema import model_of_schema
from agents.features.planning.middleware import WriteTodosInput
from agents.middleware.execution import ExecuteInput
from agents.middleware.filesystem import ReadFileInput
from agents.middleware.inputs import unknown_fields

TEXT = {"type": "string"}
CLOSED = {
    "properties": {"city": TEXT, "stops": {"type": "array", "items": {"properties": {"at": TEXT}}}}
}
OPEN = {"properties": {"city": TEXT}, "additionalProperties": True}
COMBINED = {"properties": {"city": TEXT}, "anyOf": [{"properties": {"zip": TEXT}}]}


@pytest.mark.parametrize(
    ("model", "given", "unknown"),
    [
        (ExecuteInput, {"command": "ls", "timeout": 5}, []),
        (ExecuteInput, {"command": "ls", "comand": "rm"}, ["comand"]),
        (ReadFileInput, {"file_path": "a"}, []),
        (ReadFileInput, {"path": "a", "file_path": "b"}, ["file_path"]),
        (WriteTodosInput, {"todos": [{"content": "a", "stauts": "done"}]}, ["todos.0.stauts"]),
        (model_of_schema("a", CLOSED), {"city": "Bern", "stops": [{"at": "x"}]}, []),
        (model_of_schema("b", CLOSED), {"city": "Bern", "ctiy": ""}, ["ctiy"]),
        (model_of_schema("c", CLOSED), {"stops": [{"at": "x", "to": "y"}]}, ["stops.0.to"]),
        (model_of_schema("d", OPEN), {"city": "Bern", "ctiy": ""}, []),
        (model_of_schema("e", COMBINED), {"city": "Bern", "zip": "1"}, []),
        (model_of_schema("f", COMBINED), {"city": "Bern", "zpi": "1"}, ["zpi"]),
        (model_of_schema("g", {}), {"anything": 1}, []),
    ],
)
def test_unknown_fields_are_found(
    model: type[BaseModel], given: dict[str, Any], unknown: list[str]
) -> None:
    assert unknown_fields(model, given, {}) == unknown


def test_an_unknown_field_of_the_model_may_stay_as_it_is() -> None:
    before = {"command": "ls", "why": "to look"}
    assert unknown_fields(ExecuteInput, {**before, "command": "ls -l"}, before) == []
    assert unknown_fields(ExecuteInput, {**before, "why": "other"}, before) == ["why"]
