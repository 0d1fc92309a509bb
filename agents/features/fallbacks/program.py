"""Fallbacks of a Python program's agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from agents.features.fallbacks.options import FallbackOptions, problem_of
from agents.kernel.lazy_modules import lazy_modules
from agents.kernel.programs import ProgramOptions

with lazy_modules:
    # They need Django's settings.
    from agents.providers import base, registry
    from agents.services.agent_definitions import settings_places

_PAIR = {"provider", "model"}


class FallbackArguments(ProgramOptions):
    names = ("fallbacks",)

    def checked(self, name: str, value: Any) -> list[Mapping[str, str]]:
        if not isinstance(value, list | tuple):
            raise ValueError(f"fallbacks: give a list of models, not {value!r:.80}.")
        for at, item in enumerate(value):
            if not isinstance(item, Mapping) or set(item) != _PAIR or not all(item.values()):
                raise ValueError(f'fallbacks: number {at + 1}: give {{"provider": …, "model": …}}.')
        try:
            options = FallbackOptions.model_validate({"fallbacks": [*map(dict, value)]})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            raise ValueError(f"{place}: {first['msg']}.") from None
        if problem := problem_of(options.fallbacks):
            raise ValueError(problem)
        return list(value)

    def stored(self, values: Mapping[str, Any]) -> dict[str, Any]:
        for at, item in enumerate(values["fallbacks"]):
            provider = item["provider"]
            try:
                registry.get_provider(provider, settings_places.settings_of(provider))
            except base.ProviderError as error:
                key = settings_places.setting_names(provider)[0]
                more = f": set {key}" if error.code == "missing_key" else ""
                raise ValueError(f"fallbacks: number {at + 1}: {error.message}{more}.") from None
        found = [dict(item) for item in values["fallbacks"]]
        return {"fallbacks": found} if found else {}


PROGRAM_OPTIONS = (FallbackArguments(),)
