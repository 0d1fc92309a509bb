"""Check the arguments of a program. Each error names the argument. Works without Django."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_camel

from agents.sdk.errors import SetupError

MOST = 2_147_483_647
SHOWN = 80
"""The number of characters of an invalid value that an error shows."""


def wrong(name: str, expected: str, value: Any) -> SetupError:
    """Return the error for a value of the wrong type. The value must not be a secret."""
    return SetupError(f"{name} must be {expected}, got {shown(value)}.")


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


@contextmanager
def renamed(names: Mapping[str, str]) -> Iterator[None]:
    """Replace argument names in each `SetupError` of the block by those that the program uses.

    `names` maps the names of the checks to those of the program.
    """
    try:
        yield
    except SetupError as error:
        text = str(error)
        for name, written in names.items():
            if f"{written}=" in text:
                text = text.replace(f" ({name})", "")  # both names are given
            text = re.sub(rf"(?<![\w/]){name}(?![\w/])", written, text)
        error.args = (text, *error.args[1:])
        raise


def check_flags(arguments: Any, names: Iterable[str]) -> None:
    for name in names:
        value = getattr(arguments, name)
        if not isinstance(value, bool):
            raise wrong(name, "True or False", value)


def check_texts(arguments: Any, names: Iterable[str], *, or_none: bool = False) -> None:
    for name in names:
        value = getattr(arguments, name)
        if not (isinstance(value, str) or (or_none and value is None)):
            raise wrong(name, "a text or None" if or_none else "a text", value)


def check_paths(arguments: Any, names: Iterable[str]) -> None:
    """Raise `SetupError` unless the attributes `names` of `arguments` are paths or None."""
    for name in names:
        value = getattr(arguments, name)
        if value is not None and not (isinstance(value, str | Path) and str(value)):
            raise wrong(name, "a path or None", value)


def check_number(name: str, value: Any, least: int, most: int = MOST) -> None:
    if type(value) is not int or not least <= value <= most:
        raise wrong(name, f"a whole number from {least:,} to {most:,}", value)


def check_positive(name: str, value: Any, *, whole: bool = False, expected: str = "") -> None:
    kinds = int if whole else (int, float, Decimal)
    if not isinstance(value, kinds) or value is True or not value > 0:
        kind = "whole number" if whole else "number"
        raise wrong(name, f"a {kind} above 0{expected}", value)


def listed(name: str, value: Any, what: str) -> list[Any]:
    """Return a list or tuple as a new list. Raises `SetupError` for other types, also for a text.

    `what` describes the items in the error.
    """
    if not isinstance(value, list | tuple):
        raise wrong(name, f"a list of {what}", value)
    return list(value)


def listed_texts(name: str, value: Any, what: str) -> list[str]:
    found = listed(name, value, what)
    for at, item in enumerate(found):
        if not isinstance(item, str) or not item:
            raise wrong(f"{name}: number {at + 1}", "a text", item)
    return found


def named(name: str, value: Any, example: str) -> dict[str, Any]:
    """Return a copy of `value`, which must be a dictionary with `str` keys.

    Args:
        name: The name of the argument, for the error.
        value: The argument.
        example: An example of a correct value, for the error.

    Raises:
        SetupError: `value` is no dictionary, or has other keys.
    """
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise SetupError(f"{name} must be a dictionary, as {example}.")
    return dict(value)


def known_fields(
    kind: type[Any], given: Mapping[str, Any], what: str, hidden: Collection[str] = ()
) -> Mapping[str, Any]:
    """Return `given`, whose keys must be fields of the dataclass `kind`. Raises `SetupError`.

    Fields in `hidden` are not accepted.
    """
    known = [field.name for field in fields(kind) if field.name not in hidden]
    for name in given:
        if name not in known:
            near = get_close_matches(str(name), known, n=1)
            meant = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(known)}."
            raise SetupError(f"{what} has no option {name!r}{meant}")
    return given


def in_snake_case(kind: type[Any], given: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Return `given` with field names of the dataclass `kind` in place of names in camelCase.

    Unknown names do not change. Raises `SetupError` for a field that is given twice.
    """
    names = {to_camel(field.name): field.name for field in fields(kind)}
    found: dict[str, Any] = {}
    for key, value in given.items():
        name = names.get(key, key)
        if name in found:
            raise SetupError(f"{what}: {name} is given twice: leave one out.")
        found[name] = value
    return found


def instance_of(kind: type[Any], given: Any, what: str) -> Any:
    """Return `given`, or an instance of the dataclass `kind` for a dictionary of its fields.

    Names in camelCase are accepted. Raises `SetupError`.
    """
    if isinstance(given, kind):
        return given
    if not isinstance(given, Mapping):
        raise wrong(what, f"a {kind.__name__} or a dictionary of its fields", given)
    given = in_snake_case(kind, given, what)
    known_fields(kind, given, what)
    for field in fields(kind):
        has_default = field.default is not MISSING or field.default_factory is not MISSING
        if field.init and not has_default and field.name not in given:
            raise SetupError(f"{what}: {field.name} is missing.")
    return kind(**given)


def check_fields(kind: type[BaseModel], values: Mapping[str, Any], what: str) -> None:
    """Check values against the fields of the same names in `kind`. Raises `SetupError`."""
    try:
        # Validate as JSON, so that a list is accepted for a tuple, but a number not for a text.
        kind.model_validate_json(json.dumps(dict(values)), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise SetupError(f"{what}: {place}: {first['msg']}, got {shown(first['input'])}.") from None
    except (TypeError, ValueError):
        bad = next((key for key, value in values.items() if not _is_json(value)), "")
        raise SetupError(f"{what}: {bad} must contain JSON data only.") from None


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True
