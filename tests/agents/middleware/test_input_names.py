"""The input fields that a tool reads."""

from __future__ import annotations

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from agents.middleware.filesystem import ReadFileInput
from agents.middleware.inputs import input_names


class ByName(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    city: str = Field(validation_alias="town")


class Anything(BaseModel):
    model_config = ConfigDict(extra="allow")
    city: str


def test_the_names_are_those_that_are_taken() -> None:
    assert input_names(ReadFileInput) == {"path", "file_path", "offset", "limit", "line_offset"}
    assert input_names(ByName) == {"city", "town"}
    assert input_names(Anything) is None


def test_an_alias_replaces_the_name() -> None:
    class Aliased(BaseModel):
        city: str = Field(validation_alias=AliasChoices("town", "place"))

    assert input_names(Aliased) == {"town", "place"}
