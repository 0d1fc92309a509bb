"""The databases of a Python program's agent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agents.features.databases.limits import (
    LEAST_SECONDS,
    MOST_ROWS,
    MOST_SECONDS,
    NAME_PATTERN,
)
from agents.kernel.lazy_modules import lazy_modules
from agents.kernel.programs import ProgramOptions

with lazy_modules:
    # It imports Django's views, which programs without databases do not need.
    from agents.features.databases.drivers import address

_EXAMPLE = '{"shop": {"query_timeout": 5, "row_limit": 100}}'


class DatabaseArguments(ProgramOptions):
    names = ("databases", "database_limits")

    def checked(self, name: str, value: Any) -> Any:
        return _limits(value) if name == "database_limits" else _urls(value)

    def stored(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {}


PROGRAM_OPTIONS = (DatabaseArguments(),)


def _urls(given: Mapping[str, str]) -> Mapping[str, str]:
    """Check names, and the form of URLs. Raises `ValueError` without any part of a URL."""
    for name, url in given.items():
        if not re.fullmatch(NAME_PATTERN, name):
            raise ValueError(
                f"databases: {name[:100]}: Use letters, digits, _ and -, a letter first."
            )
        try:
            address.address_of(address.from_here(url).strip())
        except address.AddressRefused as error:
            raise ValueError(f"databases: {name}: {error}") from None
    return given


def _limits(given: Any) -> dict[str, dict[str, Any]]:
    """Return the limits of each database. Raises `ValueError`."""
    if not isinstance(given, Mapping) or not all(
        isinstance(limits, Mapping) for limits in given.values()
    ):
        raise ValueError(f"database_limits must be a dictionary, as {_EXAMPLE}.")
    for name, limits in given.items():
        for limit, value in limits.items():
            place = f"database_limits: {name}: {limit}"
            if limit == "query_timeout":
                if type(value) not in (int, float) or not LEAST_SECONDS <= value <= MOST_SECONDS:
                    raise ValueError(
                        f"{place} must be a number from {LEAST_SECONDS} to {MOST_SECONDS}, got "
                        f"{value!r:.80}."
                    )
            elif limit == "row_limit":
                if type(value) is not int or not 1 <= value <= MOST_ROWS:
                    raise ValueError(
                        f"{place} must be a whole number from 1 to {MOST_ROWS:,}, got "
                        f"{value!r:.80}."
                    )
            else:
                raise ValueError(f"{place} is not a limit: there are query_timeout and row_limit.")
    return {name: dict(limits) for name, limits in given.items()}
