"""The input of a tool: nulls of optional fields, and characters that cannot be stored."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import AliasChoices, BaseModel, Field

from agents.middleware.input_check import fitting_input


class Inner(BaseModel):
    number: int = 1


class Input(BaseModel):
    path: str = Field(validation_alias=AliasChoices("path", "file_path"))
    limit: int = Field(default=100, validation_alias=AliasChoices("limit", "lines"))
    include: str | None = "*.md"
    inner: Inner = Inner()


def checked(**given: Any) -> Any:
    return fitting_input("tool", Input, given)


def test_a_null_of_an_optional_field_is_its_default() -> None:
    found = checked(file_path="a", lines=None, inner=None, include=None)
    assert (found.path, found.limit, found.inner.number) == ("a", 100, 1)
    assert found.include is None, "null is a value of this field"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"path": None}, "path: Input should be a valid string"),
        ({"file_path": None, "limit": None}, "file_path: Input should be a valid string"),
        ({"path": "a", "limit": "x"}, "limit: Input should be a valid integer"),
        ({"path": "a", "inner": {"number": None}}, "inner.number"),
        ({"path": "a\0b"}, "holds a NUL character"),
        ({"path": "a", "inner": {"number": ["\0"]}}, "holds a NUL character"),
    ],
)
def test_invalid_values_are_named(given: dict[str, Any], problem: str) -> None:
    assert problem in checked(**given)


def test_a_text_about_a_nul_character_is_accepted() -> None:
    assert checked(path=r"printf '\u0000'").path == r"printf '\u0000'"
