"""Make the model of a function's input from its type hints."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, create_model
from pydantic.fields import FieldInfo

from agents.custom.context import ToolContext
from agents.custom.docstrings import describe

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class _Input(BaseModel):
    model_config = ConfigDict(
        extra="forbid", protected_namespaces=(), arbitrary_types_allowed=False
    )


@dataclass(frozen=True, slots=True)
class Signature:
    """The input of a function. `parameters` are names for the model to fill, in order.

    `context` is the name of the parameter for a `ToolContext`; empty for none.
    """

    model: type[BaseModel]
    parameters: tuple[str, ...]
    positional: tuple[str, ...]
    context: str


def read_signature(function: Callable[..., Any], name: str) -> Signature:
    """Return the input of `function`. Raises `TypeError` for types without a JSON schema."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"The tool {name!r} has no readable signature: wrap it in a function of your own."
        ) from error
    hints = _hints(function, name)
    described = describe(function).parameters
    fields: dict[str, Any] = {}
    positional: list[str] = []
    context = ""
    for parameter in signature.parameters.values():
        _check_name(name, parameter)
        annotation = hints.get(parameter.name, parameter.annotation)
        if annotation is ToolContext:
            context = parameter.name
        else:
            fields[parameter.name] = _field(annotation, parameter, described)
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            positional.append(parameter.name)
    try:
        model = create_model(f"{name}_input", __base__=_Input, **fields)
        model.model_json_schema()
    except (PydanticUserError, NameError, TypeError, ValueError) as error:
        raise TypeError(
            f"The parameters of the tool {name!r} cannot be told to a model: "
            f"{str(error).splitlines()[0]} Use types that JSON can hold."
        ) from error
    return Signature(model, tuple(fields), tuple(positional), context)


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    target = function if inspect.isroutine(function) else type(function).__call__
    try:
        return typing.get_type_hints(target, include_extras=True)
    except (NameError, TypeError) as error:
        raise TypeError(
            f"The type hints of the tool {name!r} cannot be read ({error}): define or import "
            "what they name at the top of the module."
        ) from error


def _check_name(tool: str, parameter: inspect.Parameter) -> None:
    if parameter.kind in _VARIADIC:
        raise TypeError(
            f"The tool {tool!r} takes {parameter}: name each parameter, so that a model can be "
            "told of it."
        )
    if parameter.name.startswith("_") or hasattr(BaseModel, parameter.name):
        raise TypeError(
            f"The parameter {parameter.name!r} of the tool {tool!r} has a name that cannot be "
            "used here: choose another."
        )


def _field(
    annotation: Any, parameter: inspect.Parameter, described: dict[str, str]
) -> tuple[Any, Any]:
    if annotation is inspect.Parameter.empty:
        annotation = Any
    text = described.get(parameter.name)
    if get_origin(annotation) is Annotated:
        kind, *marks = get_args(annotation)
        given = next((mark for mark in marks if isinstance(mark, FieldInfo)), None)
        words = next((mark for mark in marks if isinstance(mark, str)), None)
        if given is not None and given.description:
            text = None  # pydantic uses this description
        elif words is not None:
            text = words
        kept = tuple(mark for mark in marks if not isinstance(mark, str))
        annotation = Annotated[(kind, *kept)] if kept else kind
    default = ... if parameter.default is inspect.Parameter.empty else parameter.default
    if isinstance(default, FieldInfo):
        return annotation, default
    return annotation, Field(default, description=text) if text else Field(default)
