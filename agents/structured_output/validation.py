"""Validation of values against a schema, with bounded work and short error messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any

from agents.kernel.lazy_modules import lazy_modules
from agents.structured_output.schema import FORMATS, compile_pattern

with lazy_modules:
    from jsonschema import exceptions, validators  # takes 70 ms, needed only for runs with a schema


MAX_PROBLEMS = 10
MAX_STEPS = 100_000
"""Limit of a validation: about one second. A step is one keyword of the schema on one value."""
PREVIEW = 60
REASON = 200

_Errors = Iterator["exceptions.ValidationError"]
_Keyword = Callable[[Any, Any, Any, Any], _Errors]


@dataclass(frozen=True, slots=True)
class Problem:
    """A validation error. `path` is the place in the answer, from `$`; empty for the whole text."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class _TooMuch(Exception):
    """The validation takes too many steps."""


def problems_in(value: Any, schema: Mapping[str, Any]) -> list[Problem]:
    """Return the validation errors, at most `MAX_PROBLEMS`. Empty if `value` is valid.

    `schema` is a result of `check_schema`. Blocks for about one second at most.
    """
    try:
        found = [_problem(error) for error in islice(_errors(value, schema), MAX_PROBLEMS)]
    except (_TooMuch, RecursionError):
        return [Problem("", "The answer is too large to be checked against the schema.")]
    return list(dict.fromkeys(found))


def _errors(value: Any, schema: Mapping[str, Any]) -> _Errors:
    left = MAX_STEPS

    def counted(keyword: str, check: _Keyword) -> _Keyword:
        def checked(validator: Any, wanted: Any, instance: Any, schema: Any) -> _Errors:
            nonlocal left
            left -= _steps(keyword, wanted, instance)
            if left < 0:
                raise _TooMuch
            yield from check(validator, wanted, instance, schema) or ()

        return checked

    draft = validators.Draft202012Validator
    words: dict[str, _Keyword] = {word: draft.VALIDATORS[word] for word in _COMMON}
    keywords = {word: counted(word, check) for word, check in (words | _OWN).items()}
    kind = validators.create({}, keywords, type_checker=draft.TYPE_CHECKER)
    return iter(kind(schema).iter_errors(value))


def _steps(keyword: str, wanted: Any, instance: Any) -> int:
    if keyword in ("enum", "required", "properties"):
        return 1 + len(wanted)
    if keyword in ("uniqueItems", "additionalProperties"):
        return 1 + (len(instance) if isinstance(instance, list | dict) else 0)
    if keyword in ("pattern", "format"):
        return 1 + (len(instance) // 100 if isinstance(instance, str) else 0)
    return 1


_COMMON = (
    *("type", "enum", "const", "properties", "required", "additionalProperties"),
    *("items", "prefixItems", "anyOf", "oneOf", "allOf"),
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
)


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> _Errors:
    if isinstance(instance, str) and not compile_pattern(pattern).search(instance):
        yield _error("")


def _format(validator: Any, name: str, instance: Any, schema: Any) -> _Errors:
    if isinstance(instance, str) and not FORMATS[name](instance):
        yield _error("")


def _multiple_of(validator: Any, factor: float, instance: Any, schema: Any) -> _Errors:
    """Check exactly: in decimal notation, 0.3 is a multiple of 0.1."""
    is_number = isinstance(instance, int | float) and not isinstance(instance, bool)
    if is_number and Fraction(repr(instance)) % Fraction(repr(factor)):
        yield _error("")


def _unique_items(validator: Any, wanted: bool, instance: Any, schema: Any) -> _Errors:
    """Check in linear time, without comparing all pairs."""
    items = instance if wanted and isinstance(instance, list) else []
    if len({_canonical(item) for item in items}) < len(items):
        yield _error("")


_OWN: dict[str, _Keyword] = {
    "pattern": _pattern,
    "format": _format,
    "multipleOf": _multiple_of,
    "uniqueItems": _unique_items,
}


def _error(message: str) -> exceptions.ValidationError:
    return exceptions.ValidationError(message)


def _canonical(value: Any) -> str:
    return json.dumps(_with_whole_numbers(value), sort_keys=True)


def _with_whole_numbers(value: Any) -> Any:
    """Convert floats to integers if they are equal, such as 1.0."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_with_whole_numbers(item) for item in value]
    if isinstance(value, dict):
        return {name: _with_whole_numbers(item) for name, item in value.items()}
    return value


def _problem(error: exceptions.ValidationError) -> Problem:
    """Return path and reason on one line each: names from the model can contain line breaks."""
    path, reason = _path(error.absolute_path), _reason(error)
    return Problem(" ".join(path.split()), " ".join(reason.split()))


def _path(parts: Sequence[str | int]) -> str:
    path = "$"
    for part in parts:
        path += f"[{part}]" if isinstance(part, int) else f".{part[:80]}"
    return path[:REASON]


def _reason(error: exceptions.ValidationError) -> str:
    word = str(error.validator)
    wanted: Any = error.validator_value
    instance: Any = error.instance
    if word in ("anyOf", "oneOf") and error.context:
        reason = f"does not fit any of the {len(wanted)} alternatives; {_nearest(error)}"
    elif word == "type":
        kinds = wanted if isinstance(wanted, str) else " or ".join(wanted)
        reason = f"must be of type {kinds}, got {_shown(instance)}"
    elif word == "required":
        missing = [name for name in wanted if name not in instance]
        reason = f"lacks {', '.join(missing[:10])}"
    elif word == "additionalProperties":
        known = error.schema.get("properties", {}) if isinstance(error.schema, dict) else {}
        extra = [name for name in instance if name not in known]
        reason = f"may not have {', '.join(name[:80] for name in extra[:10])}"
    elif word in ("enum", "const"):
        reason = f"must be {'one of ' * (word == 'enum')}{_shown(wanted, 120)}, got "
        reason += _shown(instance)
    elif word == "oneOf":
        reason = "fits more than one of the alternatives, and must fit exactly one"
    elif word == "uniqueItems":
        reason = "holds the same item twice"
    elif word == "items" and wanted is False:
        reason = "may have no further items"
    elif word == "None":
        reason = "may not be there"
    else:
        reason = f"must have {word} {_shown(wanted)}, got {_shown(instance)}"
    return reason[:REASON]


def _nearest(error: exceptions.ValidationError) -> str:
    best = exceptions.best_match([error])
    if best is None or best is error:
        return f"got {_shown(error.instance)}"
    return f"nearest: {_path(best.absolute_path)} {_reason(best)}"


def _shown(value: Any, limit: int = PREVIEW) -> str:
    """Return the start of a value, or only the type of a large one."""
    if isinstance(value, dict | list) and len(value) > limit:
        return f"a list of {len(value)}" if isinstance(value, list) else "a large object"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


CUT_OFF = "The answer was cut off at the limit of output tokens: give a shorter one."


def prompt_segment(schema_text: str) -> str:
    """Return a part of the system prompt, for all answers of an agent."""
    return (
        "## Form of the answer\n"
        "Your final answer to each message is only one JSON value that fits this JSON Schema, with "
        f"no words before or after it.\n\n{compact(schema_text)}"
    )


def message_note(schema_text: str) -> str:
    """Return a note for one message, about the answer to it."""
    return (
        "[Vel: the final answer to this message must be only one JSON value that fits this JSON "
        f"Schema, with no words before or after it: {compact(schema_text)}]"
    )


def repair_text(problems: Sequence[Problem], schema_text: str = "") -> str:
    """Return the message to the model after an invalid answer.

    Pass `schema_text` if the system prompt does not contain the schema: in a long run, the note
    with the schema may have been replaced by a summary.
    """
    listed = "\n".join(f"- {problem}" for problem in problems)
    return (
        "Your answer does not fit the requested form:\n"
        f"{listed}\n"
        "Answer again with only the whole JSON value."
        f"{' It must fit this JSON Schema: ' + compact(schema_text) if schema_text else ''}"
    )


def compact(schema_text: str) -> str:
    """Return JSON text without the spaces between its values."""
    return json.dumps(json.loads(schema_text), ensure_ascii=False, separators=(",", ":"))
