"""Providers by name."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cache

from agents.providers.anthropic import AnthropicProvider, is_official
from agents.providers.anthropic_conversation import CacheBreakpoint
from agents.providers.base import Provider, ProviderError
from agents.providers.scripted import ScriptedProvider

DEFAULT_PROVIDER = "anthropic"
DEFAULT_MODEL = "claude-sonnet-5-5"
"""The newest Sonnet, and the only place that says so."""

DEFAULT_SCRIPT = "demo"

PROVIDERS = ("anthropic", "scripted")
EXTRAS = ("google", "openai")
"""Known, and not part of this version."""


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """What an operator sets for a provider.

    `base_url` None: ANTHROPIC_BASE_URL, else Anthropic's API. `api_key` None: ANTHROPIC_API_KEY,
    but never for a base URL that is set here and is not Anthropic's: the key of the one is not
    sent to the other. `stall_timeout` is the longest silence of a stream in seconds.
    """

    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    cache_breakpoint: CacheBreakpoint | None = None
    stall_timeout: float = 120.0


def get_provider(name: str, settings: ProviderSettings | None = None) -> Provider:
    """The provider of this name; one instance per process for the same settings.

    Raises `ProviderError`: missing_key, not_installed, unknown_provider.
    """
    if name == "scripted":
        return _scripted()
    if name == "anthropic":
        return _anthropic(_with_environment(settings or ProviderSettings()))
    if name in EXTRAS:
        raise ProviderError(
            f"provider {name!r} needs the extra {name!r}, which this installation does not have; "
            f"this version has {' and '.join(PROVIDERS)}",
            code="not_installed",
        )
    raise ProviderError(
        f"there is no provider {name!r}; known are {', '.join(PROVIDERS)}",
        code="unknown_provider",
    )


def default_model(provider: str) -> str:
    """The model of an agent that names none."""
    return DEFAULT_SCRIPT if provider == "scripted" else DEFAULT_MODEL


def _with_environment(settings: ProviderSettings) -> ProviderSettings:
    base_url = settings.base_url or os.environ.get("ANTHROPIC_BASE_URL") or None
    api_key = settings.api_key
    if api_key is None and (settings.base_url is None or is_official(settings.base_url)):
        api_key = os.environ.get("ANTHROPIC_API_KEY") or None
    return ProviderSettings(api_key, base_url, settings.cache_breakpoint, settings.stall_timeout)


@cache
def _anthropic(settings: ProviderSettings) -> AnthropicProvider:
    return AnthropicProvider(
        settings.api_key,
        settings.base_url,
        stall_timeout=settings.stall_timeout,
        cache_breakpoint=settings.cache_breakpoint,
    )


@cache
def _scripted() -> ScriptedProvider:
    return ScriptedProvider()
