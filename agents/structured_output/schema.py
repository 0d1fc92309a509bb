"""Supported JSON Schemas.

A subset of draft 2020-12 with bounded cost: references stay within the schema and are not
recursive, so that they can be expanded; patterns use RE2; sizes are limited. Unsupported keywords
are errors, because users would rely on ignored ones.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from functools import lru_cache
from typing import Any, NoReturn

import re2  # type: ignore[import-untyped]

MAX_BYTES = 16 * 1024
MAX_DEPTH = 16
"""Maximum depth of nested schemas."""
MAX_SCHEMAS = 1_000
"""Including all expanded references."""
MAX_PATTERN = 500
MAX_ENUM = 500

_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_COUNTS = frozenset(
    {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"}
)
_LIMITS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_NOTES = frozenset({"title", "description", "default", "examples", "$schema", "$comment"})
_SEVERAL = ("anyOf", "oneOf", "allOf", "prefixItems")
_DEFINITIONS = ("$defs", "definitions")
KEYWORDS = (
    _COUNTS
    | _LIMITS
    | _NOTES
    | frozenset((*_SEVERAL, *_DEFINITIONS))
    | frozenset({"type", "enum", "const", "properties", "required", "additionalProperties"})
    | frozenset({"items", "uniqueItems", "pattern", "format", "$ref"})
)


class SchemaRefused(ValueError):
    """A schema that is not supported. The message gives the place and the reason, for a person."""


def check_schema(schema: object) -> dict[str, Any]:
    """Return `schema` with expanded references.

    Definitions and keywords that are only for authors, such as `$comment` and `examples`, are left
    out. Raises `SchemaRefused`.
    """
    if not isinstance(schema, dict):
        raise SchemaRefused('Give a JSON Schema as an object, as {"type": "object", …}.')
    try:
        size = len(json.dumps(schema, ensure_ascii=False, allow_nan=False).encode())
    except (ValueError, TypeError, RecursionError):
        raise SchemaRefused("The schema is not JSON, or nests too deeply.") from None
    if size > MAX_BYTES:
        raise SchemaRefused(f"The schema has {size:,} bytes and may have {MAX_BYTES:,}.")
    return _Reader(schema).read(schema, "$", (), 0)


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> Any:
    """Compile a pattern that matches in linear time. Raises `re2.error`."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 1 << 20
    return re2.compile(pattern, options=options)


class _Reader:
    """A traversal of a schema and its references."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._count = 0

    def read(self, schema: Any, place: str, opened: tuple[str, ...], depth: int) -> dict[str, Any]:
        """Return the schema at `place`. `opened` are the references that contain it."""
        self._count += 1
        if self._count > MAX_SCHEMAS:
            raise SchemaRefused(
                f"The schema is too large: with its references it has over {MAX_SCHEMAS:,} parts."
            )
        if depth > MAX_DEPTH:
            _refuse(place, f"is more than {MAX_DEPTH} levels deep")
        if not isinstance(schema, dict):
            _refuse(place, "must be a schema, an object in braces")
        unknown = [word for word in schema if word not in KEYWORDS]
        if unknown:
            _refuse(
                place,
                f"has {unknown[0][:80]!r}, which is not checked here. Taken are "
                f"{', '.join(sorted(KEYWORDS))}",
            )
        if "$ref" in schema:
            return self._reference(schema, place, opened, depth)
        read: dict[str, Any] = {}
        for word, value in schema.items():
            if word in _DEFINITIONS or word in ("$schema", "$comment", "examples", "default"):
                continue
            read[word] = self._word(word, value, f"{place}.{word}", opened, depth)
        return read

    def _reference(
        self, schema: dict[str, Any], place: str, opened: tuple[str, ...], depth: int
    ) -> dict[str, Any]:
        reference = schema["$ref"]
        beside = set(schema) - _NOTES - set(_DEFINITIONS) - {"$ref"}
        if beside:
            _refuse(place, f"has {min(beside)!r} next to $ref: put it where $ref leads to")
        parts = reference.split("/") if isinstance(reference, str) else []
        if len(parts) != 3 or parts[0] != "#" or parts[1] not in _DEFINITIONS:
            _refuse(f"{place}.$ref", "must be of the form #/$defs/NAME, within this schema")
        if reference in opened:
            _refuse(f"{place}.$ref", f"leads back to itself ({reference[:80]}): write it out")
        name = parts[2].replace("~1", "/").replace("~0", "~")
        definitions = self._root.get(parts[1])
        if not isinstance(definitions, dict) or name not in definitions:
            _refuse(f"{place}.$ref", f"leads to nothing: there is no {reference[:80]}")
        notes = {word: schema[word] for word in ("title", "description") if word in schema}
        found = self.read(definitions[name], place, (*opened, reference), depth + 1)
        return {**found, **{word: _text(value, place) for word, value in notes.items()}}

    def _word(self, word: str, value: Any, place: str, opened: tuple[str, ...], depth: int) -> Any:
        if word in ("title", "description"):
            return _text(value, place)
        if word == "type":
            return _types(value, place)
        if word == "properties":
            if not isinstance(value, dict):
                _refuse(place, "must be an object of schemas by name")
            return {
                name: self.read(inner, f"{place}.{name[:80]}", opened, depth + 1)
                for name, inner in value.items()
            }
        if word in _SEVERAL:
            if not isinstance(value, list) or not value:
                _refuse(place, "must be a list of schemas")
            return [
                self.read(inner, f"{place}[{number}]", opened, depth + 1)
                for number, inner in enumerate(value)
            ]
        if word in ("items", "additionalProperties"):
            if isinstance(value, bool):
                return value
            return self.read(value, place, opened, depth + 1)
        return _checked(word, value, place)


def _checked(word: str, value: Any, place: str) -> Any:
    if word == "enum":
        if not isinstance(value, list) or not 0 < len(value) <= MAX_ENUM:
            _refuse(place, f"must be a list of 1 to {MAX_ENUM} values")
    elif word == "required":
        if not isinstance(value, list) or any(not isinstance(name, str) for name in value):
            _refuse(place, "must be a list of names")
        return list(dict.fromkeys(value))
    elif word in _COUNTS:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            _refuse(place, "must be a whole number, 0 or more")
    elif word in _LIMITS:
        if isinstance(value, bool) or not isinstance(value, int | float):
            _refuse(place, "must be a number")
        if word == "multipleOf" and value <= 0:
            _refuse(place, "must be more than 0")
    elif word == "uniqueItems":
        if not isinstance(value, bool):
            _refuse(place, "must be true or false")
    elif word == "pattern":
        _check_pattern(value, place)
    elif word == "format" and value not in FORMATS:
        _refuse(place, f"must be one of {', '.join(sorted(FORMATS))}: others are not checked")
    return value


def _check_pattern(value: Any, place: str) -> None:
    if not isinstance(value, str) or len(value) > MAX_PATTERN:
        _refuse(place, f"must be a regular expression of at most {MAX_PATTERN} characters")
    try:
        compile_pattern(value)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        reason = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        _refuse(place, f"is no regular expression that RE2 takes: {reason[:200]}")


def _types(value: Any, place: str) -> Any:
    given = value if isinstance(value, list) else [value]
    if not given or any(not isinstance(name, str) or name not in _TYPES for name in given):
        _refuse(place, f"must be one of {', '.join(sorted(_TYPES))}, or a list of them")
    return value


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        _refuse(place, "must be a text")
    return value


def _refuse(place: str, why: str) -> NoReturn:
    raise SchemaRefused(f"{place[:200]} {why}.")


_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(r"\d\d:\d\d:\d\d(\.\d{1,9})?(Z|z|[+-]\d\d:\d\d)", re.ASCII)
_EMAIL = re.compile(r"[^@\s]{1,64}@[^@\s.]{1,63}(\.[^@\s.]{1,63}){0,8}")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}:[^\s<>\"{}|\\^`]+")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def _is_date(text: str) -> bool:
    return _DATE.fullmatch(text) is not None and _reads(date.fromisoformat, text)


def _is_time(text: str) -> bool:
    return _TIME.fullmatch(text) is not None and _reads(time.fromisoformat, _cut(text))


def _is_date_time(text: str) -> bool:
    day, clock = text[:10], text[11:]
    return (
        text[10:11] in ("T", "t")
        and _DATE.fullmatch(day) is not None
        and _TIME.fullmatch(clock) is not None
        and _reads(datetime.fromisoformat, f"{day}T{_cut(clock)}")
    )


def _cut(clock: str) -> str:
    """Cut the fraction of a second to six digits, the maximum in Python."""
    return re.sub(r"(\.\d{6})\d+", r"\1", clock).replace("z", "Z")


def _is_address(version: int) -> Callable[[str], bool]:
    kind = ipaddress.IPv4Address if version == 4 else ipaddress.IPv6Address
    return lambda text: "%" not in text and _reads(kind, text)


def _reads(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True


FORMATS: dict[str, Callable[[str], bool]] = {
    "date": _is_date,
    "time": _is_time,
    "date-time": _is_date_time,
    "email": lambda text: _EMAIL.fullmatch(text) is not None,
    "uri": lambda text: _URI.fullmatch(text) is not None,
    "uuid": lambda text: _UUID.fullmatch(text) is not None,
    "ipv4": _is_address(4),
    "ipv6": _is_address(6),
}
"""Checks by format name in JSON Schema."""
