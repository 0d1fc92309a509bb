"""The form of an agent's answers in a program: a JSON Schema, or a class. Needs no Django."""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import or_
from typing import Annotated, Any, Literal, get_args, get_origin

import typing_extensions
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from agents.kernel.lazy_modules import lazy_modules
from agents.sdk.errors import SetupError

with lazy_modules:
    # Importing RE2 takes 20 ms, and most agents answer in words.
    from agents.structured_output import schema as schemas


_EXPECTED = (
    "output_schema must be a JSON Schema as a dictionary, or a class: a pydantic model, a "
    "dataclass or a TypedDict"
)
_NAMED = frozenset({"properties", "$defs"})
_SEVERAL = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_ONE = frozenset({"items", "additionalProperties"})


class AnswerRefused(ValueError):
    """The class does not accept an answer that fits its schema."""


@dataclass(frozen=True)
class AnswerForm:
    """The schema that an agent stores. `reads` makes an instance from JSON text; None for text."""

    schema: dict[str, Any]
    reads: Callable[[str], Any] | None = None

    def value(self, answer: str) -> Any:
        """Return the instance for an answer in JSON. Raises `AnswerRefused`."""
        assert self.reads is not None
        try:
            return self.reads(answer)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            raise AnswerRefused(
                f"The class of output_schema refuses the answer: {place or 'it'}: {first['msg']}. "
                f"The answer is {answer}"
            ) from error


def form_of(given: Any) -> AnswerForm | None:
    """Return the form for the argument `output_schema`. Raises `SetupError`."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        form = AnswerForm(dict(given))
    elif isinstance(given, type) or get_origin(given) is not None:
        form = _form_of_class(given)
    else:
        raise SetupError(f"{_EXPECTED}, got {given!r:.80}.")
    try:
        schemas.check_schema(form.schema)
    except schemas.SchemaRefused as error:
        raise SetupError(f"output_schema: {error}") from None
    return form


@lru_cache(maxsize=128)
def _form_of_class(kind: Any) -> AnswerForm:
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(_usable(kind))
        schema = adapter.json_schema(schema_generator=_Schema)
    except (PydanticUserError, NameError, TypeError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        raise SetupError(f"{_EXPECTED}, got {kind!r:.80}: {reason}") from error
    return AnswerForm(_supported(schema), adapter.validate_json)


class _Schema(GenerateJsonSchema):
    """A decimal is a number: the pattern for its text is not one of RE2."""

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> dict[str, Any]:
        found = super().decimal_schema(schema)
        return next((each for each in found.get("anyOf", ()) if each["type"] == "number"), found)


def _supported(schema: Any) -> Any:
    """Return a schema of pydantic without keywords that Vel does not check.

    The class checks the answer completely. Titles only repeat names.
    """
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    for word, value in schema.items():
        if word in _NAMED:
            found[word] = {name: _supported(each) for name, each in value.items()}
        elif word in _SEVERAL:
            found[word] = [_supported(each) for each in value]
        elif word in _ONE:
            found[word] = _supported(value)
        elif word in schemas.KEYWORDS and word != "title" and _is_checked(word, value):
            found[word] = value
    return found


def _is_checked(word: str, value: Any) -> bool:
    if word == "format":
        return value in schemas.FORMATS
    if word == "pattern":
        try:
            schemas.check_schema({"type": "string", "pattern": value})
        except schemas.SchemaRefused:
            return False
    return True


def _usable(kind: Any, within: tuple[Any, ...] = ()) -> Any:
    """Return a type that pydantic accepts: before Python 3.12 it refuses `typing.TypedDict`."""
    if sys.version_info >= (3, 12):
        return kind
    if typing.is_typeddict(kind) and type(kind).__module__ == "typing":
        if kind in within:
            raise TypeError(f"{kind.__name__} contains itself.")
        return _typed_dict(kind, (*within, kind))
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is None or origin is Literal:
        return kind
    usable = tuple(_usable(each, within) for each in arguments)
    if usable == arguments:
        return kind
    if origin is Annotated:
        return Annotated[(usable[0], *arguments[1:])]
    if origin in (typing.Union, types.UnionType):
        return reduce(or_, usable)
    return origin[usable]


def _typed_dict(kind: Any, within: tuple[Any, ...]) -> Any:
    """Return the same typed dictionary, made by typing_extensions."""
    fields: dict[str, Any] = {}
    for name, hint in typing_extensions.get_type_hints(kind, include_extras=True).items():
        required = name in kind.__required_keys__
        if get_origin(hint) in (typing_extensions.Required, typing_extensions.NotRequired):
            required = get_origin(hint) is typing_extensions.Required
            hint = get_args(hint)[0]
        mark = typing_extensions.Required if required else typing_extensions.NotRequired
        fields[name] = mark[_usable(hint, within)]
    made = typing_extensions.TypedDict(kind.__name__, fields)  # type: ignore[misc]
    made.__doc__ = kind.__doc__
    return made
