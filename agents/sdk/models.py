"""The model of an agent, checked before anything is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agents.kernel.lazy_modules import lazy_modules
from agents.sdk.config import Model
from agents.sdk.errors import SetupError

with lazy_modules:
    # They need Django's settings.
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
    """A model. Empty fields: as in the settings. The key is not stored."""

    provider: str = ""
    model: str = ""
    max_tokens: int | None = None
    thinking: str = ""
    effort: str = ""


def choice_of(model: Model) -> ModelChoice:
    if model is None:
        return ModelChoice()
    if isinstance(model, str):
        return ModelChoice(model=model)
    return ModelChoice(
        provider=str(model.get("provider") or ""),
        model=str(model.get("model") or ""),
        max_tokens=model.get("max_tokens"),
        thinking=str(model.get("thinking") or ""),
        effort=str(model.get("effort") or ""),
    )


def key_of(model: Model) -> str | None:
    given = model.get("api_key") if isinstance(model, Mapping) else None
    return str(given) if given else None


def checked(choice: ModelChoice) -> ModelChoice:
    """Return the choice with its provider and model. Raises `SetupError` for an unusable one.

    The offline script is never a silent default: it must be chosen.
    """
    settings = vel_settings.ModelSettings.now()
    provider = choice.provider or settings.PROVIDER or registry.DEFAULT_PROVIDER
    try:
        registry.get_provider(provider, settings_places.settings_of(provider))
    except base.ProviderError as error:
        message = f"model: {error.message}."
        if error.code == "missing_key":
            message = _NO_KEY.format(
                provider=provider, key=settings_places.setting_names(provider)[0]
            )
        raise SetupError(message) from None
    name = choice.model or agents.default_model(provider)
    return ModelChoice(provider, name, choice.max_tokens, choice.thinking, choice.effort)
