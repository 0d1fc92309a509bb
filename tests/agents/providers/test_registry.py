"""Providers by name."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from agents.providers.anthropic.provider import AnthropicProvider
from agents.providers.base import ProviderError
from agents.providers.openai.provider import OpenAIProvider
from agents.providers.registry import (
    DEFAULT_MODEL,
    ProviderSettings,
    default_model,
    get_provider,
)

LOCAL = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for maker in ("ANTHROPIC", "OPENAI"):
        monkeypatch.delenv(f"{maker}_API_KEY", raising=False)
        monkeypatch.delenv(f"{maker}_BASE_URL", raising=False)


def key_of(provider: object) -> str:
    assert isinstance(provider, AnthropicProvider)
    return provider._api_key


def test_one_instance_serves_the_same_settings() -> None:
    settings = ProviderSettings("key", LOCAL)
    assert get_provider("anthropic", settings) is get_provider("anthropic", settings)
    other = get_provider("anthropic", ProviderSettings("another", LOCAL))
    assert other is not get_provider("anthropic", settings)
    assert get_provider("scripted") is get_provider("scripted", settings)


def test_only_the_offline_model_is_called_scripted() -> None:
    assert get_provider("scripted").is_scripted
    assert not get_provider("anthropic", ProviderSettings(base_url=LOCAL)).is_scripted


def test_the_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProviderError, match="set ANTHROPIC_API_KEY"):
        get_provider("anthropic")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "from-the-environment")
    assert key_of(get_provider("anthropic")) == "from-the-environment"
    assert key_of(get_provider("anthropic", ProviderSettings("given"))) == "given"


def test_the_key_of_the_environment_is_not_sent_to_another_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "from-the-environment")
    provider = get_provider("anthropic", ProviderSettings(base_url=LOCAL))
    assert key_of(provider) != "from-the-environment"
    lookalike = ProviderSettings(base_url="https://api.anthropic.com.example.org")
    assert key_of(get_provider("anthropic", lookalike)) != "from-the-environment"
    monkeypatch.setenv("ANTHROPIC_BASE_URL", LOCAL)
    assert key_of(get_provider("anthropic")) == "from-the-environment"


def test_the_keys_of_openai_are_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "of-anthropic")
    with pytest.raises(ProviderError, match="set OPENAI_API_KEY") as caught:
        get_provider("openai")
    assert caught.value.code == "missing_key"
    monkeypatch.setenv("OPENAI_API_KEY", "of-openai")
    assert openai_of("openai")._api_key == "of-openai"
    for elsewhere in (LOCAL, "https://api.openai.com.example.org/v1"):
        assert openai_of("openai", base_url=elsewhere)._api_key not in {"of-openai", "of-anthropic"}
    monkeypatch.setenv("OPENAI_BASE_URL", LOCAL)
    assert openai_of("openai")._api_key == "of-openai"


@pytest.mark.parametrize(
    ("name", "base_url", "wire"),
    [
        ("openai", None, "responses"),
        ("openai", "https://API.openai.com/v1/", "responses"),
        ("openai", LOCAL, "chat"),
        ("openai", "https://api.openai.com.example.org/v1", "chat"),
        ("openai-chat", None, "chat"),
        ("openai-responses", LOCAL, "responses"),
    ],
)
def test_which_of_openai_s_protocols(name: str, base_url: str | None, wire: str) -> None:
    provider = openai_of(name, base_url=base_url, api_key="key")
    assert (provider.name, provider.wire) == (name, wire)


def openai_of(name: str, **settings: Any) -> OpenAIProvider:
    provider = get_provider(name, ProviderSettings(**settings))
    assert isinstance(provider, OpenAIProvider)
    return provider


@pytest.mark.parametrize(("name", "package"), [("openai-chat", "openai"), ("google", "google")])
def test_a_provider_without_its_extra_is_reported_as_missing(name: str, package: str) -> None:
    """In a Python process without the package."""
    code = (
        "import importlib.util as u, sys; find = u.find_spec\n"
        f"u.find_spec = lambda name, *p: None if name == {package!r} else find(name, *p)\n"
        "from agents.providers.registry import get_provider\n"
        "from agents.providers.base import ProviderError\n"
        f"try: get_provider({name!r})\n"
        "except ProviderError as error: print(error.code, error.message)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == (
        f"not_installed provider '{name}' needs the extra '{package}', which this installation "
        f"does not have: pip install 'vel[{package}]'\n"
    )


def test_an_unknown_provider_is_reported_with_the_known_ones() -> None:
    with pytest.raises(ProviderError, match="no provider 'clever'; known are anthropic, openai, "):
        get_provider("clever")


def test_an_agent_without_a_model_gets_its_provider_s() -> None:
    assert default_model("anthropic") == DEFAULT_MODEL
    assert get_provider("scripted").conversation is not None
    assert default_model("scripted") != DEFAULT_MODEL
    assert default_model("openai") == default_model("openai-chat") != DEFAULT_MODEL


def test_a_key_is_not_printed() -> None:
    assert "s3cret" not in repr(ProviderSettings("s3cret"))


def test_a_command_that_calls_no_model_does_not_load_the_sdk() -> None:
    code = (
        "import sys; from agents.providers.registry import get_provider; get_provider('scripted');"
        "sys.exit(bool({'anthropic', 'openai', 'httpx2', 'pydantic', 'django'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
