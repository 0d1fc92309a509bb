"""The provider, model, server and key of model calls in the settings, and checks of them.

The checks send no request to a provider, so they do not know which models it has. Each provider
gets only its own key.
"""

from __future__ import annotations

import os
from itertools import chain
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from agents.kernel.features import collect
from agents.providers.base import PromptHead, ProviderError
from agents.providers.registry import (
    OPENAI,
    PROVIDERS,
    ProviderSettings,
    check_provider,
    get_provider,
    is_installed,
    is_official,
)
from agents.providers.scripted import FILE_PREFIX
from agents.providers.stored_keys import stored_key
from agents.services.agent_definitions.actions import SCRIPTED, default_provider
from agents.settings import ModelSettings, ScriptSettings

_MAKERS = {"claude-": "anthropic", "gpt-": "openai", "gemini-": "google"}
"""The provider of models by the start of their names."""


def check_own_process() -> None:
    """Check the settings in a process that executes only its own runs, such as `vel run`.

    Raises `ImproperlyConfigured` with the first problem. Other processes have system checks for
    these settings. Features add functions that return lists of error messages
    (`checks.OWN_PROCESS`).
    """
    of_features = (look() for _, look in collect("checks", "OWN_PROCESS"))
    for problem in (provider_problem(), *chain.from_iterable(of_features)):
        if problem:
            raise ImproperlyConfigured(problem)


def default_model_problem() -> str:
    """Return why the default model cannot work, or "" if no problem is known."""
    return provider_problem() or _script_problem()


def provider_problem() -> str:
    """Return why the provider and the model of the settings do not fit, or "" if they may fit."""
    settings = ModelSettings.now()
    provider, model = settings.PROVIDER, settings.MODEL
    if provider:
        try:
            check_provider(provider)
        except ProviderError as error:
            advice = "Install it" if error.code == "not_installed" else "Correct the name"
            return (
                f"{_named('PROVIDER', provider)}: {error.message}. {advice}, or take VEL_PROVIDER "
                "out."
            )
    chosen = default_provider()
    if chosen == SCRIPTED:
        return _script_problem() if provider else ""
    maker = next((maker for start, maker in _MAKERS.items() if model.startswith(start)), "")
    own = "openai" if chosen in OPENAI else chosen
    if not maker or maker == own or not is_official(chosen, settings_of(chosen)):
        return ""
    key = setting_names(maker)[0]
    return (
        f"{_named('MODEL', model)}: this is a model of {maker}, and agents that name no provider "
        f"ask {chosen}. Set VEL_PROVIDER={maker} and {key}, or take VEL_MODEL out."
    )


def _script_problem() -> str:
    settings = ModelSettings.now()
    if not settings.MODEL or settings.MODEL.startswith(FILE_PREFIX):
        return ""
    if default_provider() != SCRIPTED:
        return ""
    try:
        get_provider(SCRIPTED).conversation(PromptHead(model=settings.MODEL, system=""))
    except ProviderError as error:
        why = f"{error.message}. Correct the name"
        if not settings.PROVIDER:
            why = (
                "without a key and a provider the offline script answers, which has no script of "
                f"that name. Set {setting_names('anthropic')[0]}, or VEL_PROVIDER "
                f"({', '.join(PROVIDERS)})"
            )
        return f"{_named('MODEL', settings.MODEL)}: {why}, or take VEL_MODEL out."
    return ""


def scripts_directory_problem() -> str:
    """Return why scripts cannot be read from the directory of the settings, or "" if they can."""
    directory = ScriptSettings.now().SCRIPTS_DIR
    problem = _unreadable(directory) if directory is not None else ""
    if not problem:
        return ""
    return (
        f'VEL_SCRIPTS_DIR (settings.VEL["SCRIPTS_DIR"]): {problem} Make the directory readable for '
        "this account, or take the setting out."
    )


def _unreadable(directory: Path) -> str:
    try:
        with os.scandir(directory):
            return ""
    except OSError as error:
        return f"{str(directory)!r} cannot be read ({error.strerror})."


def _named(key: str, value: str) -> str:
    return f'VEL_{key}={value!r} (settings.VEL["{key}"])'


_PREFIXES = {"anthropic": "ANTHROPIC", **dict.fromkeys(OPENAI, "OPENAI"), "google": "GOOGLE"}


def setting_names(provider: str) -> tuple[str, str]:
    """Return the names of the provider's key and base URL, in the settings and the environment."""
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
        has_key = settings.api_key or stored_key(provider)
        if (chosen or has_key or settings.base_url) and is_installed(package):
            found.append(f"agents.providers.{provider}.provider")
    return found
