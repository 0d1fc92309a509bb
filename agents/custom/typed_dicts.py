"""Typed dictionaries in type hints of developers."""

from __future__ import annotations

import sys
import types
import typing
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal, get_args, get_origin

import typing_extensions


def usable_type(kind: Any, within: tuple[Any, ...] = ()) -> Any:
    """Return a type that pydantic accepts: before Python 3.12 it refuses `typing.TypedDict`.

    `within` are the typed dictionaries around it. Raises `TypeError` for one that contains itself.
    """
    if sys.version_info >= (3, 12):
        return kind
    if typing.is_typeddict(kind) and type(kind).__module__ == "typing":
        if kind in within:
            raise TypeError(f"{kind.__name__} contains itself.")
        return _typed_dict(kind, (*within, kind))
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is None or origin is Literal:
        return kind
    usable = tuple(usable_type(each, within) for each in arguments)
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
        fields[name] = mark[usable_type(hint, within)]
    made = typing_extensions.TypedDict(kind.__name__, fields)  # type: ignore[misc]
    made.__doc__ = kind.__doc__
    return made
