"""A function's types and docstring become the description for a model, and check its inputs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, Optional, Required, TypedDict

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field, ValidationError

from agents.custom.signature import InvalidTool, describe, read_signature
from agents.custom.tool_spec import ToolSpec, tool
from agents.middleware.wire_schema import wire_schema
from agents.providers.google.conversation import parameters


class Address(BaseModel):
    street: str
    number: int = 1


@dataclass
class Size:
    width: int
    height: int = 2


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


def order(
    item: str,
    amount: Annotated[int, "How many"],
    where: Address,
    size: Size,
    how: Literal["fast", "cheap"] = "cheap",
    note: Optional[str] = None,  # noqa: UP045  # many people write it so
    colour: Colour = Colour.RED,
    price: Annotated[float, Field(gt=0, description="In euros")] = 1.0,
) -> str:
    """Order something.

    It is sent at once.

    Args:
        item (str): What is ordered,
            by its name
        note: A word to the seller

    Returns:
        nothing of interest
    """
    return f"{item}{amount}"


def test_every_kind_of_hint_is_described() -> None:
    spec = ToolSpec.from_function(order)
    assert spec.name == "order"
    assert spec.description == "Order something.\nIt is sent at once."
    told = wire_schema(spec.signature.model)
    fields = told["properties"]
    assert told["required"] == ["item", "amount", "where", "size"]
    assert fields["item"] == {"type": "string", "description": "What is ordered, by its name"}
    assert fields["amount"] == {"type": "integer", "description": "How many"}
    assert fields["where"]["properties"]["street"] == {"type": "string"}
    assert fields["size"]["properties"]["height"] == {"type": "integer", "default": 2}
    assert fields["how"]["enum"] == ["fast", "cheap"]
    assert fields["note"] == {"type": "string", "description": "A word to the seller"}
    assert fields["colour"]["enum"] == ["red", "blue"]
    assert fields["price"]["description"] == "In euros"
    assert fields["price"]["exclusiveMinimum"] == 0


class Node(BaseModel):
    title: str
    below: list[Node] = []


class Tags(BaseModel):
    default: Node | None = None


def plant(
    root: Annotated[Node, Field(description="The first one")],
    where: Annotated[Address, "Where it stands"] = Address(street="A"),  # noqa: B008
    other: Annotated[Address | None, Field(description="Or there")] = None,
    spare: Node | None = None,
    sizes: dict[str, Size] = {},  # noqa: B006
    words: Literal["a"] | dict[str, Any] = {"title": "t"},  # noqa: B006
) -> None:
    """Plant a tree."""


def test_a_parameter_keeps_its_description_and_default_with_a_model_as_its_type() -> None:
    fields = wire_schema(ToolSpec.from_function(plant).signature.model)["properties"]
    assert fields["where"]["description"] == "Where it stands"
    assert fields["where"]["default"] == {"street": "A", "number": 1}
    assert fields["where"]["properties"]["street"] == {"type": "string"}
    assert fields["other"]["description"] == "Or there"
    assert fields["other"]["properties"] == fields["where"]["properties"]
    assert fields["sizes"]["additionalProperties"]["properties"]["width"] == {"type": "integer"}
    assert fields["words"]["default"] == {"title": "t"}


def test_a_recursive_type_is_described_once() -> None:
    told = wire_schema(ToolSpec.from_function(plant).signature.model)
    reference = {"$ref": "#/$defs/Node"}
    assert told["properties"]["root"] == {**reference, "description": "The first one"}
    assert told["properties"]["spare"] == reference
    node = {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "below": {"type": "array", "items": reference, "default": []},
        },
        "required": ["title"],
    }
    assert told["$defs"] == {"Node": node}
    assert wire_schema(Node) == {**node, "$defs": {"Node": node}}
    assert wire_schema(Tags)["properties"] == {"default": reference}
    Draft202012Validator.check_schema(told)
    assert parameters(told)["$defs"]["Node"]["properties"]["below"]["items"] == reference


def test_values_arrive_as_their_types_and_others_are_refused() -> None:
    model = ToolSpec.from_function(order).signature.model
    given = {"item": "tea", "amount": "2", "where": {"street": "A"}, "size": {"width": 3}}
    checked: Any = model.model_validate(given)
    assert checked.where == Address(street="A")
    assert checked.size == Size(3)
    assert checked.colour is Colour.RED
    for wrong in ({"amount": "many"}, {"how": "slow"}, {"price": -1}, {"unknown": 1}):
        with pytest.raises(ValidationError):
            model.model_validate({**given, **wrong})


def numpy_style(a: int, b: int) -> int:
    """Add.

    Parameters
    ----------
    a : int
        The first.
    b
        The second,
        and last.

    Returns
    -------
    int
        a: not a parameter here.
    """
    return a + b


def sphinx_style(a: int, b: int) -> int:
    """Add.

    :param a: The first.
    :param int b: The second,
        and last.
    :returns: a: The sum.
    """
    return a + b


@pytest.mark.parametrize("function", [numpy_style, sphinx_style])
def test_the_other_styles_of_docstrings_are_read(function: Any) -> None:
    found = describe(function)
    assert found.summary == "Add."
    assert found.parameters == {"a": "The first.", "b": "The second, and last."}


def many(*numbers: int) -> None:
    """Take many."""


def loose(**named: int) -> None:
    """Take anything."""


def hidden(_secret: int) -> None:
    """Take a secret."""


def shadowed(model_dump: int) -> None:
    """Take what a model has."""


def odd(value: object) -> None:
    """Take what JSON has not."""


class NotJson:
    pass


def impossible(value: NotJson) -> None:
    """Take what JSON has not."""


def silent(value: int) -> None: ...


@pytest.mark.parametrize("function", [many, loose, hidden, shadowed, impossible])
def test_unusable_parameters_are_refused_with_the_tools_name(function: Any) -> None:
    with pytest.raises(InvalidTool, match=function.__name__):
        ToolSpec.from_function(function)


def test_a_tool_needs_a_description_a_name_and_known_options() -> None:
    with pytest.raises(InvalidTool, match="silent has no description"):
        ToolSpec.from_function(silent)
    with pytest.raises(InvalidTool, match="no name of a tool"):
        ToolSpec.from_function(numpy_style, name="two words")
    with pytest.raises(InvalidTool, match="effect"):
        ToolSpec.from_function(numpy_style, effect="all")  # type: ignore[arg-type]
    with pytest.raises(InvalidTool, match="timeout"):
        ToolSpec.from_function(numpy_style, timeout=0)


def test_the_decorator_keeps_the_function_callable() -> None:
    @tool(effect="read", requires_approval=True, timeout=5, name="sum_up")
    def add(a: int, b: int = 2) -> int:
        """Add two numbers."""
        return a + b

    @tool
    def plain(a: int) -> int:
        """Say it back."""
        return a

    assert add(1) == 3
    assert (add.name, add.effect, add.requires_approval, add.timeout) == ("sum_up", "read", True, 5)
    assert (plain.name, plain.effect, plain.requires_approval) == ("plain", "external", None)


def test_a_tool_may_bring_json_schema_instead() -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "minLength": 2}},
        "required": ["city"],
        "additionalProperties": False,
    }
    spec = ToolSpec("weather", "Tell the weather.", lambda city: city, schema)
    assert wire_schema(spec.signature.model)["properties"]["city"]["minLength"] == 2
    spec.signature.model.model_validate({"city": "Bonn"})
    for wrong in ({"city": "B"}, {}, {"city": "Bonn", "more": 1}, {"city": 3}):
        with pytest.raises(ValidationError):
            spec.signature.model.model_validate(wrong)
    with pytest.raises(InvalidTool, match=r"\$ref"):
        ToolSpec("w", "w", print, {"properties": {"a": {"$ref": "#/$defs/a"}}})
    with pytest.raises(InvalidTool, match="input_schema of w"):
        ToolSpec("w", "w", print, {"type": "array"})


class Place(TypedDict):
    city: str


class Visit(TypedDict, total=False):
    places: list[Place]
    note: Required[str | None]


def visit(plan: Visit, others: Annotated[list[Visit] | None, "More"] = None) -> str:
    """Plan a visit."""
    return ""


def test_a_typed_dictionary_of_typing_is_read_in_every_python() -> None:
    model = read_signature(visit, "visit").model
    given = {"plan": {"places": [{"city": "Bonn"}], "note": None}}
    assert model.model_validate(given).plan == given["plan"]  # type: ignore[attr-defined]
    assert model.model_fields["others"].description == "More"
    for wrong in ({"places": []}, {"note": None, "places": [{}]}):
        with pytest.raises(ValidationError):
            model.model_validate({"plan": wrong})
