"""The form of an agent's answers in a program: a JSON Schema or a class. Works without Django."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from agents.custom.typed_dicts import usable_type
from agents.kernel.lazy_modules import lazy_modules
from agents.sdk.errors import SetupError

with lazy_modules:
    # Import late: RE2 takes 20 ms, and most agents answer with text.
    from agents.structured_output import schema as schemas


_EXPECTED = (
    "output_schema must be a JSON Schema as a dictionary, or a class: a pydantic model, a "
    "dataclass or a TypedDict"
)
_NAMED = frozenset({"properties", "$defs"})
_SEVERAL = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_ONE = frozenset({"items", "additionalProperties"})


class AnswerRefused(ValueError):
    """An answer has the right schema, but the class does not accept it."""


@dataclass(frozen=True)
class AnswerForm:
    """The JSON Schema of the answers, which the agent stores.

    `reads` returns an instance for an answer in JSON; None if the program receives text.
    """

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
    """Return the form for the argument `output_schema`, None for text. Raises `SetupError`."""
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
        adapter: TypeAdapter[Any] = TypeAdapter(usable_type(kind))
        schema = adapter.json_schema(schema_generator=_Schema)
    except (PydanticUserError, NameError, TypeError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        raise SetupError(f"{_EXPECTED}, got {kind!r:.80}: {reason}") from error
    return AnswerForm(_supported(schema), adapter.validate_json)


class _Schema(GenerateJsonSchema):
    """Generates a number for a decimal, because RE2 does not support the pattern for its text."""

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> dict[str, Any]:
        found = super().decimal_schema(schema)
        return next((each for each in found.get("anyOf", ()) if each["type"] == "number"), found)


def _supported(schema: Any) -> Any:
    """Return a schema of pydantic without keywords that Vel does not check.

    The class checks the complete answer. Titles only repeat names.
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
