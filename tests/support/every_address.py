"""The addresses of all URL patterns of the project.

An unknown kind of pattern raises an error, so that no pattern is missed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

_ARGUMENT = re.compile(r"<(?:(?P<kind>\w+):)?(?P<name>\w+)>")
_REGULAR = {"(?P<url>.*)$": "nothing", "^(?:/)?$": "", "": ""}
"""Regular expressions in patterns, each with a text that matches it."""
_ANYTHING = {"int": "1", "path": "a/b"}


@dataclass(frozen=True)
class Address:
    """An address. `name` has its namespaces: `api:run`, `admin:agents_run_change`, or the route."""

    name: str
    path: str
    arguments: frozenset[str]
    view: Any


def addresses(values: Mapping[str, object] | None = None) -> Iterator[Address]:
    """Yield the address of each pattern, with the arguments from `values`."""
    yield from _walk(get_resolver().url_patterns, "/", "", values or {})


def _walk(
    patterns: list[Any], prefix: str, names: str, values: Mapping[str, object]
) -> Iterator[Address]:
    for item in patterns:
        route = _written(str(item.pattern))
        if isinstance(item, URLResolver):
            inner = f"{names}{item.namespace}:" if item.namespace else names
            yield from _walk(item.url_patterns, prefix + route, inner, values)
            continue
        assert isinstance(item, URLPattern)
        found = {match["name"] for match in _ARGUMENT.finditer(prefix + route)}
        path = _ARGUMENT.sub(
            lambda match: str(values.get(match["name"], _ANYTHING.get(match["kind"], "x"))),
            prefix + route,
        )
        yield Address(names + (item.name or route), path, frozenset(found), item.callback)


def _written(route: str) -> str:
    """Return a route in the syntax of `path`."""
    if route in _REGULAR:
        return _REGULAR[route]
    apps = re.fullmatch(r"\^\(\?P<app_label>(\w+)\|?.*\)/\$", route)
    if apps:
        return f"{apps[1]}/"
    assert not re.search(r"[\\^$()?]", route), f"{route!r}: add a text that matches it here"
    return route
