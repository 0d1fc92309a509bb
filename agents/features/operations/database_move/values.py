"""Values of columns: reading what SQLite stores, checking it, and a form to compare it.

SQLite stores values of any type in any column, and has no types for times, decimals and JSON. Each
kind of column reads the stored value, or says why PostgreSQL would refuse or change it. The value
between the databases is a Python value; for JSON it is the text.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from django.utils.dateparse import parse_date, parse_datetime, parse_time

_MICROSECOND = timedelta(microseconds=1)
_JSON_DIGITS = 16_000
"""PostgreSQL stores numbers in JSON with at most this many digits before and after the point."""


class BadValue(ValueError):
    """The target cannot store this value. The message completes "the value …"."""


class StoredText(bytes):
    """A text as SQLite stores it. Plain `bytes` are a BLOB."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a column in the target, which SQLite does not enforce."""

    length: int | None = None
    lowest: int | None = None
    highest: int | None = None
    digits: int = 0
    places: int = 0
    nul: bool = True
    """Whether texts can contain NUL."""


# Reading what SQLite stores -----------------------------------------------------------------------


def _text(stored: Any) -> str:
    if not isinstance(stored, StoredText):
        raise BadValue(f"is {_type(stored)} instead of a text")
    try:
        return stored.decode()
    except UnicodeDecodeError as error:
        raise BadValue(f"is not valid UTF-8 (byte {error.start + 1})") from None


def _integer(stored: Any) -> int:
    if not isinstance(stored, int):
        raise BadValue(f"is {_type(stored)} instead of a whole number")
    return stored


def _boolean(stored: Any) -> bool:
    if stored not in (0, 1) or not isinstance(stored, int):
        raise BadValue("is neither 0 nor 1")
    return bool(stored)


def _float(stored: Any) -> float:
    if not isinstance(stored, int | float):
        raise BadValue(f"is {_type(stored)} instead of a number")
    return float(stored)


def _decimal(stored: Any) -> Decimal:
    if isinstance(stored, int):
        return Decimal(stored)
    if isinstance(stored, float):
        # As Django reads it: a float has 15 decimal digits.
        return Context(prec=15).create_decimal_from_float(stored)
    try:
        return Decimal(_text(stored))
    except InvalidOperation:
        raise BadValue("is no decimal number") from None


def _parsed(parse: Callable[[str], Any], what: str) -> Callable[[Any], Any]:
    def read(stored: Any) -> Any:
        try:
            found = parse(_text(stored))
        except BadValue:
            raise
        except ValueError:
            found = None
        if found is None:
            raise BadValue(f"is no {what}")
        return found

    return read


def _moment(text: str) -> datetime | None:
    found = parse_datetime(text)
    if found is None:
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def _duration(stored: Any) -> timedelta:
    try:
        return timedelta(microseconds=_integer(stored))
    except OverflowError:
        raise BadValue("is too long a time") from None


def _bytes(stored: Any) -> bytes:
    if isinstance(stored, StoredText) or not isinstance(stored, bytes):
        raise BadValue(f"is {_type(stored)} instead of bytes")
    return stored


def _type(stored: Any) -> str:
    if isinstance(stored, StoredText):
        return "a text"
    if isinstance(stored, bytes):
        return "bytes"
    return "a whole number" if isinstance(stored, int) else "a number"


# Checks, for both databases -----------------------------------------------------------------------


def _check_text(value: str, limits: Limits) -> None:
    if "\0" in value and not limits.nul:
        raise BadValue("contains a NUL character, which PostgreSQL cannot store")
    if limits.length is not None and len(value) > limits.length:
        raise BadValue(f"has {len(value):,} characters; at most {limits.length:,} are allowed")


def _check_number(value: int, limits: Limits) -> None:
    if limits.lowest is not None and value < limits.lowest:
        raise BadValue(f"is below {limits.lowest}")
    if limits.highest is not None and value > limits.highest:
        raise BadValue(f"is above {limits.highest}")


def _check_float(value: float, limits: Limits) -> None:
    if math.isnan(value):
        raise BadValue("is not a number (NaN), which SQLite cannot store")


def _check_decimal(value: Decimal, limits: Limits) -> None:
    if not value.is_finite():
        raise BadValue("is no finite decimal number")
    if value and value.adjusted() >= limits.digits - limits.places:
        raise BadValue(f"has more than {limits.digits - limits.places} digits before the point")
    if _plain(value) != _plain(rounded(value, limits.places)):
        raise BadValue(f"has more than {limits.places} digits after the point")


def rounded(value: Decimal, places: int) -> Decimal:
    """Return the value with this number of decimal places."""
    return value.quantize(Decimal(1).scaleb(-places), context=Context(prec=1_000))


def _check_json(value: str, limits: Limits) -> None:
    found = _json(value)
    if not limits.nul and "\\u" in value:
        _check_strings(found)


def _check_strings(value: Any) -> None:
    if isinstance(value, str):
        if "\0" in value:
            raise BadValue("contains a NUL character in JSON, which PostgreSQL cannot store")
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise BadValue("contains a lone surrogate in JSON, which PostgreSQL cannot store")
    elif isinstance(value, list):
        for each in value:
            _check_strings(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            _check_strings(key)
            _check_strings(each)


# The form to compare ------------------------------------------------------------------------------


class _Number:
    """A number in JSON, as its exact value: PostgreSQL writes 1e2 as 100."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        try:
            number = Decimal(text)
        except InvalidOperation:
            raise BadValue("has a number in JSON that is too large") from None
        if number and not -_JSON_DIGITS < number.adjusted() < _JSON_DIGITS:
            raise BadValue("has a number in JSON that is too large, or too close to 0")
        self.text = _plain(number)


def _refuse_constant(name: str) -> Any:
    raise BadValue(f"contains {name}, which is not JSON")


def _json(text: str) -> Any:
    try:
        return json.loads(
            text, parse_float=_Number, parse_int=_Number, parse_constant=_refuse_constant
        )
    except BadValue:
        raise
    except (ValueError, RecursionError):
        raise BadValue("is not valid JSON, or nested too deeply") from None


def _canonical_json(value: Any) -> str:
    if isinstance(value, _Number):
        return value.text
    if isinstance(value, list):
        return f"[{','.join(map(_canonical_json, value))}]"
    if isinstance(value, dict):
        pairs = (f"{json.dumps(key)}:{_canonical_json(value[key])}" for key in sorted(value))
        return f"{{{','.join(pairs)}}}"
    return json.dumps(value)


def _plain(number: Decimal) -> str:
    """Return digits and exponent without trailing zeros, exactly. Zero has no sign."""
    sign, digits, exponent = number.as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    short = text.rstrip("0")
    if not short:
        return "0"
    assert isinstance(exponent, int)  # finite
    return f"{'-' if sign else ''}{short}e{exponent + len(text) - len(short)}"


def _moment_text(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="microseconds")


@dataclass(frozen=True, slots=True)
class Kind:
    """How values of one kind are read, checked, compared and stored."""

    name: str
    from_sqlite: Callable[[Any], Any]
    canonical: Callable[[Any], str | bytes]
    check: Callable[[Any, Limits], None] = lambda value, limits: None
    to_sqlite: Callable[[Any], Any] = lambda value: value
    select: str = "{}"
    """The expression that reads the column from PostgreSQL."""


_KINDS = (
    Kind("text", _text, str, _check_text),
    Kind("integer", _integer, str, _check_number),
    Kind("boolean", _boolean, str, to_sqlite=int),
    Kind("float", _float, lambda value: struct.pack(">d", value + 0.0), _check_float),
    Kind("decimal", _decimal, _plain, _check_decimal, to_sqlite=str),
    Kind(
        "datetime",
        _parsed(_moment, "date and time"),
        _moment_text,
        to_sqlite=lambda value: str(value.astimezone(UTC).replace(tzinfo=None)),
    ),
    Kind("date", _parsed(parse_date, "date"), date.isoformat, to_sqlite=str),
    Kind("time", _parsed(parse_time, "time"), time.isoformat, to_sqlite=str),
    Kind(
        "duration",
        _duration,
        lambda value: str(value // _MICROSECOND),
        to_sqlite=lambda value: value // _MICROSECOND,
    ),
    Kind(
        "uuid",
        _parsed(UUID, "UUID"),
        lambda value: value.hex,
        to_sqlite=lambda value: value.hex,
    ),
    Kind("binary", _bytes, bytes),
    Kind(
        "json",
        _text,
        lambda value: _canonical_json(_json(value)),
        _check_json,
        select="{}::text",
    ),
    Kind("address", _text, str, select="host({})"),
)
KINDS = {kind.name: kind for kind in _KINDS}
OF_FIELDS = {
    "AutoField": "integer",
    "BigAutoField": "integer",
    "SmallAutoField": "integer",
    "IntegerField": "integer",
    "BigIntegerField": "integer",
    "SmallIntegerField": "integer",
    "PositiveIntegerField": "integer",
    "PositiveBigIntegerField": "integer",
    "PositiveSmallIntegerField": "integer",
    "BooleanField": "boolean",
    "CharField": "text",
    "SlugField": "text",
    "FileField": "text",
    "FilePathField": "text",
    "TextField": "text",
    "FloatField": "float",
    "DecimalField": "decimal",
    "DateTimeField": "datetime",
    "DateField": "date",
    "TimeField": "time",
    "DurationField": "duration",
    "UUIDField": "uuid",
    "BinaryField": "binary",
    "JSONField": "json",
    "GenericIPAddressField": "address",
}
"""The kind of each of Django's internal types."""


def digest_part(kind: Kind, value: Any) -> bytes:
    """Return the bytes of a value for a table's hash. Different values have different bytes."""
    if value is None:
        return b"-"
    found = kind.canonical(value)
    data = found if isinstance(found, bytes) else found.encode()
    return b"%d:" % len(data) + data
