"""The addresses of all pages of the site, from its URL patterns and the given arguments."""

from __future__ import annotations

from collections.abc import Iterator

from agents.web.urls import urlpatterns


def addresses(arguments: dict[str, object]) -> Iterator[tuple[str, str]]:
    """Yield (name, path) of each pattern. `arguments` has a value for each of its parameters.

    A pattern with a new parameter raises an error: add a value, so that its page is tested.
    """
    for pattern in urlpatterns:
        found = {name: arguments[name] for name in pattern.pattern.converters}
        route = str(pattern.pattern)
        for name, converter in pattern.pattern.converters.items():
            kind = {"SlugConverter": "slug", "IntConverter": "int", "PathConverter": "path"}
            spelled = kind.get(type(converter).__name__, "str")
            for form in (f"<{spelled}:{name}>", f"<{name}>"):
                route = route.replace(form, str(found[name]))
        assert "<" not in route, route
        yield str(pattern.name), f"/{route}"
