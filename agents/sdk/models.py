"""Check the model of an agent before anything is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agents.kernel.lazy_modules import lazy_modules
from agents.sdk.errors import SetupError
from agents.sdk.model_config import Model, checked_model

with lazy_modules:
    # Import late, because these modules need Django's settings.
    from agents import settings as vel_settings
    from agents.providers import base, registry
    from agents.services.agent_definitions import actions as agents
    from agents.services.agent_definitions import settings_places


_NO_KEY = (
    "There is no API key for the provider {provider}: set {key}, or give "
    'model={{"provider": "{provider}", "api_key": …}}. Without a key {{"provider": "scripted"}} '
    "plays a script offline."
)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model. Empty fields have the values of the settings. The API key is not stored."""

    provider: str = ""
    model: str = ""
    max_tokens: int | None = None
    thinking: str = ""
    effort: str = ""


def choice_of(model: Model) -> ModelChoice:
    given = checked_model(model)
    if given is None:
        return ModelChoice()
    if isinstance(given, str):
        return ModelChoice(model=given)
    return ModelChoice(
        provider=str(given.get("provider") or ""),
        model=str(given.get("model") or ""),
        max_tokens=given.get("max_tokens"),
        thinking=str(given.get("thinking") or ""),
        effort=str(given.get("effort") or ""),
    )


def key_of(model: Model) -> str | None:
    given = checked_model(model)
    key = given.get("api_key") if isinstance(given, Mapping) else None
    return str(key) if key else None


def checked(choice: ModelChoice, argument: str = "model") -> ModelChoice:
    """Return the choice with its provider and model filled in.

    Raises `SetupError` if a run could not use them; `argument` is the name in the error. The
    offline script is never the default: it must be chosen.
    """
    settings = vel_settings.ModelSettings.now()
    provider = choice.provider or settings.PROVIDER or registry.DEFAULT_PROVIDER
    try:
        registry.get_provider(provider, settings_places.settings_of(provider))
    except base.ProviderError as error:
        message = f"{argument}: {error.message}."
        if error.code == "missing_key":
            message = _NO_KEY.format(
                provider=provider, key=settings_places.setting_names(provider)[0]
            )
            if argument != "model":
                message = f"{argument}: {message}"
        raise SetupError(message) from None
    name = choice.model or agents.default_model(provider)
    return ModelChoice(provider, name, choice.max_tokens, choice.thinking, choice.effort)
