"""The servers of models and their keys from the settings. Each provider gets only its own key."""

from __future__ import annotations

from agents.providers.registry import OPENAI, ProviderSettings, is_installed
from agents.settings import ModelSettings

_PREFIXES = {"anthropic": "ANTHROPIC", **dict.fromkeys(OPENAI, "OPENAI"), "google": "GOOGLE"}


def setting_names(provider: str) -> tuple[str, str]:
    """Return the names of its key and its base URL in the settings and in the environment."""
    prefix = _PREFIXES.get(provider, provider.upper())
    return f"{prefix}_API_KEY", f"{prefix}_BASE_URL"


def settings_of(provider: str) -> ProviderSettings:
    """Return the operator's settings of `provider`. The key is never another provider's."""
    settings = ModelSettings.now()
    names = setting_names(provider) if provider in _PREFIXES else ()
    key, base_url = (getattr(settings, name) for name in names) if names else ("", "")
    return ProviderSettings(
        api_key=key or None,
        base_url=base_url or None,
        stall_timeout=settings.MODEL_IDLE_SECONDS,
    )


def modules_wanted() -> list[str]:
    """Return the modules to import before the first run, for the SDKs that the settings choose.

    They cost memory (Anthropic's 40 MiB), so a module is included only if its provider is chosen or
    has a key or a base URL. Others are imported when they are needed.
    """
    found = []
    packages = {"anthropic": "anthropic", "openai": "openai", "google": "google.genai"}
    for provider, package in packages.items():
        chosen = ModelSettings.now().PROVIDER.split("-")[0] == provider
        settings = settings_of(provider)
        if (chosen or settings.api_key or settings.base_url) and is_installed(package):
            found.append(f"agents.providers.{provider}.provider")
    return found
