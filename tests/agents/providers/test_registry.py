"""Providers by name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from agents.providers.anthropic import AnthropicProvider
from agents.providers.base import ProviderError
from agents.providers.registry import (
    DEFAULT_MODEL,
    ProviderSettings,
    default_model,
    get_provider,
)

LOCAL = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)


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


@pytest.mark.parametrize("name", ["openai", "google"])
def test_a_provider_of_an_extra_says_that_it_is_not_here(name: str) -> None:
    with pytest.raises(ProviderError) as caught:
        get_provider(name)
    assert caught.value.code == "not_installed"
    assert caught.value.message == (
        f"provider '{name}' needs the extra '{name}', which this installation does not have; "
        "this version has anthropic and scripted"
    )


def test_an_unknown_provider_is_told_with_the_known_ones() -> None:
    with pytest.raises(ProviderError, match="no provider 'clever'; known are anthropic, scripted"):
        get_provider("clever")


def test_an_agent_without_a_model_gets_its_provider_s() -> None:
    assert default_model("anthropic") == DEFAULT_MODEL
    assert get_provider("scripted").conversation is not None
    assert default_model("scripted") != DEFAULT_MODEL


def test_a_key_is_not_printed() -> None:
    assert "s3cret" not in repr(ProviderSettings("s3cret"))


def test_a_command_that_calls_no_model_does_not_load_the_sdk() -> None:
    code = (
        "import sys; from agents.providers.registry import get_provider; get_provider('scripted');"
        "sys.exit(bool({'anthropic', 'httpx2', 'pydantic', 'django'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
