"""Providers by name."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from agents.kernel.lazy_modules import lazy_modules
from agents.providers.addresses import is_official as is_official_address
from agents.providers.anthropic.conversation import CacheBreakpoint
from agents.providers.base import Provider, ProviderError
from agents.providers.openai.conversation import OpenAIWire
from agents.providers.scripted import ScriptedProvider

with lazy_modules:
    # `import anthropic` takes 1.2 s and 70 MB. Commands and servers that call no model start
    # without the SDKs.
    from agents.providers.anthropic import provider as anthropic
    from agents.providers.google import provider as google
    from agents.providers.openai import provider as openai


DEFAULT_PROVIDER = "anthropic"
DEFAULT_MODEL = "claude-sonnet-5-5"
"""The newest Sonnet. Other modules refer to this constant."""

DEFAULT_OPENAI_MODEL = "gpt-6.2-sol"
DEFAULT_GOOGLE_MODEL = "gemini-3.8-flash"
DEFAULT_SCRIPT = "demo"

OPENAI: dict[str, OpenAIWire | None] = {
    "openai": None,
    "openai-responses": "responses",
    "openai-chat": "chat",
}
"""Providers of the package `openai`, and their protocols. None: by the server."""

PROVIDERS = ("anthropic", *OPENAI, "google", "scripted")

_VARIABLES = {
    "anthropic": ("ANTHROPIC_BASE_URL", ("ANTHROPIC_API_KEY",)),
    "openai": ("OPENAI_BASE_URL", ("OPENAI_API_KEY",)),
    "google": ("GOOGLE_GEMINI_BASE_URL", ("GOOGLE_API_KEY", "GEMINI_API_KEY")),
}
"""Variables of each maker's SDK: the one of the address, and those of the key."""


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """An operator's settings of a provider.

    With `base_url` None, the address is that of the environment variable ANTHROPIC_BASE_URL,
    OPENAI_BASE_URL or GOOGLE_GEMINI_BASE_URL, else the maker's own API. With `api_key` None, the
    key is that of ANTHROPIC_API_KEY, OPENAI_API_KEY, or GOOGLE_API_KEY, else GEMINI_API_KEY. These
    keys are not used with a `base_url` that is not the maker's, so that they are not sent to
    another server. `stall_timeout` is the longest silence of a stream in seconds. `scripts_dir` has
    the files that the scripted model may play; None: it plays no files.
    """

    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    cache_breakpoint: CacheBreakpoint | None = None
    stall_timeout: float = 120.0
    scripts_dir: Path | None = None


def get_provider(name: str, settings: ProviderSettings | None = None) -> Provider:
    """Return the provider of this name; one instance per process for the same settings.

    Raises `ProviderError`: missing_key, not_installed, unknown_provider.
    """
    if name == "scripted":
        return _scripted(settings.scripts_dir if settings else None)
    if name == "anthropic":
        wanted = settings or ProviderSettings()
        return _anthropic(_with_environment(wanted, "anthropic"))
    check_provider(name)
    if name in OPENAI:
        wanted = settings or ProviderSettings()
        return _openai(name, _with_environment(wanted, "openai"))
    return _google(_with_environment(settings or ProviderSettings(), "google"))


def check_provider(name: str) -> None:
    """Raise `ProviderError` (not_installed, unknown_provider) if the provider is unavailable."""
    if name not in PROVIDERS:
        raise ProviderError(
            f"there is no provider {name!r}; known are {', '.join(PROVIDERS)}",
            code="unknown_provider",
        )
    if name in OPENAI and not is_installed("openai"):
        raise _not_installed(name, "openai")
    if name == "google" and not is_installed("google.genai"):
        raise _not_installed(name, "google")


def is_official(provider: str, settings: ProviderSettings) -> bool:
    """Return whether a provider uses its maker's own address."""
    maker = "openai" if provider in OPENAI else provider
    if maker not in _VARIABLES:
        return False
    url = _with_environment(settings, maker).base_url
    return url is None or is_official_address(maker, url)


def default_model(provider: str) -> str:
    """Return the provider's model for agents that name none."""
    if provider in OPENAI:
        return DEFAULT_OPENAI_MODEL
    if provider == "google":
        return DEFAULT_GOOGLE_MODEL
    return DEFAULT_SCRIPT if provider == "scripted" else DEFAULT_MODEL


def is_installed(package: str) -> bool:
    """Return whether a package or subpackage is installed. Only imports its parent packages."""
    top = package.partition(".")[0]
    return find_spec(top) is not None and find_spec(package) is not None


def _not_installed(provider: str, extra: str) -> ProviderError:
    return ProviderError(
        f"provider {provider!r} needs the extra {extra!r}, which this installation does not "
        f"have: pip install 'vel[{extra}]'",
        code="not_installed",
    )


def _with_environment(settings: ProviderSettings, maker: str) -> ProviderSettings:
    address, keys = _VARIABLES[maker]
    base_url = settings.base_url or os.environ.get(address) or None
    api_key = settings.api_key
    if api_key is None and (
        settings.base_url is None or is_official_address(maker, settings.base_url)
    ):
        api_key = next(filter(None, map(os.environ.get, keys)), None)
    return replace(settings, api_key=api_key, base_url=base_url)


@cache
def _anthropic(settings: ProviderSettings) -> Provider:
    return anthropic.AnthropicProvider(
        settings.api_key,
        settings.base_url,
        stall_timeout=settings.stall_timeout,
        cache_breakpoint=settings.cache_breakpoint,
    )


@cache
def _openai(name: str, settings: ProviderSettings) -> Provider:
    return openai.OpenAIProvider(
        settings.api_key,
        settings.base_url,
        name=name,
        wire=OPENAI[name],
        stall_timeout=settings.stall_timeout,
    )


@cache
def _google(settings: ProviderSettings) -> Provider:
    return google.GoogleProvider(
        settings.api_key, settings.base_url, stall_timeout=settings.stall_timeout
    )


@cache
def _scripted(directory: Path | None) -> ScriptedProvider:
    made = ScriptedProvider(directory=directory)
    if directory is not None:  # a program's own scripts are available in all cases
        made.scripts = _scripted(None).scripts
    return made
