"""The arguments of `create_deep_agent` that features add. Django need not be set up."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from agents.features.installed import installed_features
from agents.kernel.programs import ProgramOptions, ProgramPart
from agents.sdk.errors import SetupError


@cache
def program_options() -> tuple[ProgramOptions, ...]:
    """Return the options of all features that are installed."""
    return tuple(
        options
        for path in installed_features()
        if find_spec(f"{path}.program") is not None
        for options in import_module(f"{path}.program").PROGRAM_OPTIONS
    )


def checked(name: str, value: Any) -> Any:
    """Return the value of an argument as the config keeps it. Raises `SetupError`."""
    for options in program_options():
        if name in options.names:
            try:
                return options.checked(name, value)
            except ValueError as error:
                raise SetupError(str(error)) from None
    if value:
        raise SetupError(f"{name}: the feature that has this option is not installed here.")
    return value


def parts_of(config: Any) -> tuple[ProgramPart, ...]:
    """Return the program's parts for each feature."""
    return tuple(options.part(_values(options, config)) for options in program_options())


def stored_options(config: Any) -> dict[str, Any]:
    """Return the options that the agent stores. Raises `SetupError` for unusable ones."""
    stored: dict[str, Any] = {}
    for options in program_options():
        try:
            stored |= options.stored(_values(options, config))
        except ValueError as error:
            raise SetupError(str(error)) from None
    return stored


def _values(options: ProgramOptions, config: Any) -> Mapping[str, Any]:
    return {name: getattr(config, name) for name in options.names}
