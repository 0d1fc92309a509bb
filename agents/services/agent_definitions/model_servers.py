"""Where the settings say that models are, and with which key: to each provider only its own."""

from __future__ import annotations

from agents.providers.registry import OPENAI, ProviderSettings, is_installed
from agents.settings import ModelSettings

_PREFIXES = {"anthropic": "ANTHROPIC", **dict.fromkeys(OPENAI, "OPENAI"), "google": "GOOGLE"}


def setting_names(provider: str) -> tuple[str, str]:
    """What its key and its base URL are called in the settings and in the environment."""
    prefix = _PREFIXES.get(provider, provider.upper())
    return f"{prefix}_API_KEY", f"{prefix}_BASE_URL"


def settings_of(provider: str) -> ProviderSettings:
    """What an operator has set for `provider`; its key is only ever its own."""
    settings = ModelSettings.now()
    names = setting_names(provider) if provider in _PREFIXES else ()
    key, base_url = (getattr(settings, name) for name in names) if names else ("", "")
    return ProviderSettings(
        api_key=key or None,
        base_url=base_url or None,
        stall_timeout=settings.MODEL_IDLE_SECONDS,
    )


def modules_wanted() -> list[str]:
    """Modules that import the SDKs which workers need before the first run, by the settings.

    They cost memory (Anthropic's 40 MiB), so they are for those who have set a key or a base URL
    for them; whatever else needs one imports it then.
    """
    found = []
    packages = {"anthropic": "anthropic", "openai": "openai", "google": "google.genai"}
    for provider, package in packages.items():
        chosen = ModelSettings.now().PROVIDER.split("-")[0] == provider
        settings = settings_of(provider)
        if (chosen or settings.api_key or settings.base_url) and is_installed(package):
            found.append(f"agents.providers.{provider}.provider")
    return found
