"""Helpers for the results and errors of the tools."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from sandbox.backends.limits import WalkLimit
from sandbox.backends.names import NOTE, meant
from sandbox.backends.protocol import Entry, Result
from sandbox.errors import FileChanged, FileError, FileTooLarge, InvalidRequest, SetupError

P = ParamSpec("P")
T = TypeVar("T")


def reports_errors(tool: Callable[P, Result]) -> Callable[P, Result]:
    """Make `tool` return a FileError as its result, so that the model can read it and continue.

    An argument of another type than the parameter raises SetupError that names it.
    """
    signature = inspect.signature(tool)
    # All six tools are in modules with `from __future__ import annotations`: these are texts.
    expected = {
        name: _TYPES[parameter.annotation]
        for name, parameter in signature.parameters.items()
        if name != "self"
    }

    @wraps(tool)
    def reporting(*args: P.args, **kwargs: P.kwargs) -> Result:
        _check_types(expected, signature.bind(*args, **kwargs).arguments)
        try:
            return tool(*args, **kwargs)
        except FileError as error:
            return {"error": str(error)}

    return reporting


_TYPES: Mapping[str, tuple[Any, str]] = {
    "str": (str, "a text"),
    "str | None": (str | None, "a text or None"),
    "int": (int, "a whole number"),
    "bool": (bool, "True or False"),
}
"""The types of the tools' parameters, and their names in messages."""


def _check_types(expected: Mapping[str, tuple[Any, str]], given: Mapping[str, Any]) -> None:
    """Raise SetupError, which names the argument, unless all arguments have the expected type."""
    for name, (kind, text) in expected.items():
        value = given.get(name)
        if name in given and (
            not isinstance(value, kind) or (kind is int and isinstance(value, bool))
        ):
            raise SetupError(f"{name} must be {text}, got {value!r:.80}.")


@contextmanager
def located(path: str) -> Iterator[None]:
    """Add `path` to a FileError of the block that has no path."""
    try:
        yield
    except FileError as error:
        if error.path is not None:
            raise
        raise error.at(path) from None


def entry_result(entry: Entry) -> Result:
    """Return an entry as {name, type, path, size?, note?}.

    The path is None for a name that is not UTF-8.
    """
    result: Result = {"name": entry.name, "type": entry.type, "path": entry.path}
    if not entry.addressable:
        result |= {"path": None, "note": "the name is not UTF-8: rename it with a command"}
    elif meant(entry.name) != entry.name:
        result["note"] = NOTE
    if entry.size is not None and entry.type == "file":
        result["size"] = entry.size
    return result


def search_result(result: Result, walk_limit: WalkLimit, *, more: bool = False) -> Result:
    """Add `truncated` to `result`, and a note with the reason and what to do next."""
    result["truncated"] = more or walk_limit.cut is not None
    if walk_limit.cut is not None:
        result["note"] = f"incomplete: {walk_limit.cut}"
    return result


def fitting(items: Sequence[T], size: Callable[[T], int], room: int) -> list[T]:
    """Return the first items whose total size is at most `room`."""
    taken = []
    for item in items:
        room -= size(item)
        if room < 0:
            break
        taken.append(item)
    return taken


def encoded(content: str, limit: int) -> bytes:
    """Return `content` as UTF-8 of at most `limit` bytes.

    Raises InvalidRequest for lone surrogates, and FileTooLarge over `limit`.
    """
    try:
        data = content.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            f"character {error.start} of the text is not valid Unicode. Leave it out."
        ) from None
    if len(data) > limit:
        raise FileTooLarge(f"{len(data)} bytes; one write accepts at most {limit}. Use parts.")
    return data


def changed(path: str) -> FileChanged:
    return FileChanged("changed since you read it. Read it again, then repeat the change.", path)


def appeared(path: str) -> FileChanged:
    return FileChanged(
        "created since you looked, when there was no such file. Read it first.", path
    )
