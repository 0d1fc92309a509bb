"""Providers by name."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path

from agents.kernel.lazy_modules import lazy_modules
from agents.providers.addresses import OFFICIAL, origin_of
from agents.providers.addresses import is_official as is_official_address
from agents.providers.anthropic.conversation import CacheBreakpoint
from agents.providers.base import Provider, ProviderError
from agents.providers.openai.conversation import OpenAIWire
from agents.providers.scripted import ScriptedProvider
from agents.providers.stored_keys import stored_key

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

MAKERS = tuple(_VARIABLES)
"""The companies whose APIs need a key. Providers of the same maker have the same key."""

_made: dict[tuple[str, ProviderSettings], Provider] = {}
_lock = threading.Lock()
"""For `_made`: each worker of a process has its own event loop."""


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """An operator's settings of a provider.

    With `base_url` None, the address is that of the environment variable ANTHROPIC_BASE_URL,
    OPENAI_BASE_URL or GOOGLE_GEMINI_BASE_URL, else the maker's own API. With `api_key` None, the
    key is that of ANTHROPIC_API_KEY, OPENAI_API_KEY, or GOOGLE_API_KEY, else GEMINI_API_KEY. These
    keys are not used with a `base_url` that is not the maker's, so that they are not sent to
    another server. Without any of these keys, a stored one for this server is used
    (`agents.providers.stored_keys`). `stall_timeout` is the longest silence of a stream in seconds.
    `scripts_dir` has the files that the scripted model may play; None: it plays no files.
    """

    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    cache_breakpoint: CacheBreakpoint | None = None
    stall_timeout: float = 120.0
    scripts_dir: Path | None = None


def get_provider(name: str, settings: ProviderSettings | None = None) -> Provider:
    """Return the provider of this name; one instance per process for the same settings.

    Raises `ProviderError`: missing_key, unusable_key, not_installed, unknown_provider.
    """
    if name == "scripted":
        return _scripted(settings.scripts_dir if settings else None)
    check_provider(name)
    resolved = _resolved(settings or ProviderSettings(), maker_of(name))
    if name == "anthropic":
        return _shared(name, resolved, _anthropic)
    if name in OPENAI:
        return _shared(name, resolved, partial(_openai, name))
    return _shared(name, resolved, _google)


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
    maker = maker_of(provider)
    return maker in MAKERS and is_official_address(maker, base_url_of(maker, settings))


def maker_of(provider: str) -> str:
    """Return the company whose API and key a provider uses."""
    return "openai" if provider in OPENAI else provider


def base_url_of(maker: str, settings: ProviderSettings) -> str:
    """Return the base URL of a maker's providers: of the settings, the environment, or its own."""
    return settings.base_url or os.environ.get(_VARIABLES[maker][0]) or OFFICIAL[maker]


def configured_key(maker: str, settings: ProviderSettings) -> str | None:
    """Return the key of the settings or the environment. It precedes a stored one."""
    if settings.api_key is not None:
        return settings.api_key
    if settings.base_url is not None and not is_official_address(maker, settings.base_url):
        return None
    return next(filter(None, map(os.environ.get, _VARIABLES[maker][1])), None)


def key_of(maker: str, settings: ProviderSettings) -> str | None:
    """Return the key for a maker's providers, None if there is none.

    Raises `ProviderError` (unusable_key) for a stored key of another server, so that a new base URL
    does not get it, and for one that cannot be decrypted.
    """
    if (configured := configured_key(maker, settings)) is not None:
        return configured
    stored = stored_key(maker)
    if stored is None:
        return None
    origin = origin_of(base_url_of(maker, settings))
    if stored.origin != origin:
        raise ProviderError(
            f"the stored key of {maker} is for {stored.origin}, and the base URL is now at "
            f"{origin}. Store a key for {origin}, or remove the stored one",
            code="unusable_key",
        )
    if stored.problem:
        raise ProviderError(
            f"the stored key of {maker} cannot be used. {stored.problem}", code="unusable_key"
        )
    return stored.api_key


def forget_provider(provider: Provider) -> None:
    """Let the next `get_provider` with the same settings create another instance."""
    with _lock:
        for key in [key for key, made in _made.items() if made is provider]:
            del _made[key]


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


def _resolved(settings: ProviderSettings, maker: str) -> ProviderSettings:
    base_url = settings.base_url or os.environ.get(_VARIABLES[maker][0]) or None
    return replace(settings, api_key=key_of(maker, settings), base_url=base_url)


def _shared(
    name: str, settings: ProviderSettings, make: Callable[[ProviderSettings], Provider]
) -> Provider:
    """Return the instance for these settings, so that all its users share its connections."""
    with _lock:
        if (name, settings) not in _made:
            _made[name, settings] = make(settings)
        return _made[name, settings]


def _anthropic(settings: ProviderSettings) -> Provider:
    return anthropic.AnthropicProvider(
        settings.api_key,
        settings.base_url,
        stall_timeout=settings.stall_timeout,
        cache_breakpoint=settings.cache_breakpoint,
    )


def _openai(name: str, settings: ProviderSettings) -> Provider:
    return openai.OpenAIProvider(
        settings.api_key,
        settings.base_url,
        name=name,
        wire=OPENAI[name],
        stall_timeout=settings.stall_timeout,
    )


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
