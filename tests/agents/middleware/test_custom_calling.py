"""Functions of developers get all the values of a call."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from pydantic import BaseModel, ConfigDict

from agents.custom.tool_spec import ToolSpec
from agents.middleware.context import ToolContext
from agents.middleware.custom.calling import engine_tool


class Ticket(BaseModel):
    model_config = ConfigDict(extra="allow")

    subject: str
    urgent: bool = False


def called(spec: ToolSpec, given: dict[str, Any]) -> Any:
    tool = engine_tool(spec)
    context = cast(ToolContext, None)  # this function asks for none
    return asyncio.run(tool.run(context, tool.input_model.model_validate(given))).content


def test_declared_fields_and_others_arrive_together() -> None:
    spec = ToolSpec("file", "File a ticket.", lambda **fields: fields, Ticket)
    given = {"subject": "Tea", "colour": "green"}
    assert called(spec, given) == {"subject": "Tea", "urgent": False, "colour": "green"}


def test_the_properties_of_a_json_schema_arrive_as_given() -> None:
    schema = {"properties": {"subject": {"type": "string"}, "urgent": {"type": "boolean"}}}
    spec = ToolSpec("file", "File a ticket.", lambda **fields: fields, schema)
    assert called(spec, {"subject": "Tea"}) == {"subject": "Tea"}
