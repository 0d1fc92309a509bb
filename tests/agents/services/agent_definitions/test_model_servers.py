"""The key and base URL of a provider, and the SDKs that workers load in advance."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

from agents.providers.registry import PROVIDERS
from agents.services.agent_definitions.settings_places import modules_wanted, settings_of

ANTHROPIC, OPENAI, GOOGLE = (
    f"agents.providers.{name}.provider" for name in ("anthropic", "openai", "google")
)
SET = {
    "ANTHROPIC_API_KEY": "key-of-anthropic",
    "ANTHROPIC_BASE_URL": "http://a.test",
    "OPENAI_API_KEY": "key-of-openai",
    "OPENAI_BASE_URL": "http://o.test/v1",
    "GOOGLE_API_KEY": "key-of-google",
    "GOOGLE_BASE_URL": "http://g.test",
}


def test_each_provider_gets_its_own_key_and_address() -> None:
    with override_settings(VEL={**settings.VEL, **SET}):
        for name in PROVIDERS:
            found = settings_of(name)
            family = name.partition("-")[0]
            expected = (None, None) if name == "scripted" else (f"key-of-{family}", found.base_url)
            assert (found.api_key, found.base_url) == expected
            assert found.base_url is None or found.base_url.startswith(f"http://{family[0]}.test")


@pytest.mark.parametrize(
    ("values", "modules"),
    [
        ({}, []),
        ({"ANTHROPIC_API_KEY": "key"}, [ANTHROPIC]),
        ({"ANTHROPIC_BASE_URL": "http://a.test", "PROVIDER": "openai-chat"}, [ANTHROPIC, OPENAI]),
        ({"OPENAI_BASE_URL": "http://o.test/v1"}, [OPENAI]),
        ({"PROVIDER": "anthropic"}, [ANTHROPIC]),
        ({"GOOGLE_API_KEY": "key"}, [GOOGLE]),
    ],
)
def test_workers_load_the_configured_modules(values: dict[str, Any], modules: list[str]) -> None:
    with override_settings(VEL={**settings.VEL, **values}):
        assert modules_wanted() == modules
    for name in modules:
        import_module(name)
