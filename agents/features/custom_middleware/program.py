"""The middleware that a Python program gives to its agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agents.custom.base_middleware import name_of
from agents.custom.hooks import HOOKS, Hooks, overrides
from agents.features.custom_middleware.registry import hooks_of
from agents.kernel.programs import ProgramOptions, ProgramPart


class ProgramMiddleware(ProgramPart):
    """The middleware that overrides hooks. A run continues only if the program has the same."""

    def __init__(self, items: Sequence[Hooks]) -> None:
        self.items = tuple(items)
        self.pinned = [
            [name_of(item), *(hook for hook in HOOKS if overrides(item, hook))] for item in items
        ]


class MiddlewareArgument(ProgramOptions):
    names = ("middleware",)

    def checked(self, name: str, value: Any) -> Any:
        hooks_of(value)
        return value

    def part(self, values: Mapping[str, Any]) -> ProgramMiddleware:
        return ProgramMiddleware(hooks_of(values["middleware"]))

    def stored(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {}


PROGRAM_OPTIONS = (MiddlewareArgument(),)
