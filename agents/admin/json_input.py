"""Reading JSON that a person typed into a form."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from django.core.exceptions import ValidationError


def parse_json(text: str) -> Any:
    """The value of `text`. Raises `ValidationError` that says what is wrong and where.

    Refused with what is no JSON is what some database would choke on: infinite numbers, NUL,
    halves of characters.
    """
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise ValidationError(
            f"This is not JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        ) from None
    except RecursionError:
        raise ValidationError("The JSON is nested too deeply.") from None
    except ValueError as error:  # an integer of thousands of digits
        raise ValidationError(f"The JSON holds a number that is too long: {error}.") from None
    _check_storable(value)
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValidationError(f"{name} is not JSON.")


def _check_storable(value: object) -> None:
    rest = [value]
    while rest:
        item = rest.pop()
        if isinstance(item, dict):
            rest += item.keys()
            rest += item.values()
        elif isinstance(item, list):
            rest += item
        elif isinstance(item, float) and not math.isfinite(item):
            raise ValidationError("The JSON holds a number that is too large.")
        elif isinstance(item, str) and any(
            char == "\x00" or "\ud800" <= char <= "\udfff" for char in item
        ):
            raise ValidationError("The JSON holds a NUL or half of a character: leave it out.")
