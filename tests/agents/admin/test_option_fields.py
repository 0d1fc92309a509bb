"""Options of features in the form of an agent."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from agents.doors.agent_form.fields import take_options
from agents.models import Agent

CONFIG = """
from agents.kernel.features import FeatureConfig


class GreetingConfig(FeatureConfig):
    name = "feature_with_options"
    label = "feature_with_options"
"""
OPTIONS = """
from agents.kernel.options import AgentOptions


class GreetingOptions(AgentOptions):
    greeting: str = "Hello"
    nickname: str | None = None
    greetings: int = 3


OPTIONS = [GreetingOptions]
"""


@pytest.fixture(autouse=True)
def _feature(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    place = tmp_path / "feature_with_options"
    place.mkdir()
    (place / "__init__.py").touch()
    (place / "apps.py").write_text(CONFIG)
    (place / "options.py").write_text(OPTIONS)
    monkeypatch.syspath_prepend(str(tmp_path))
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "feature_with_options"]
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == "feature_with_options"]:
        del sys.modules[name]


def _taken(**typed: Any) -> dict[str, Any]:
    agent = Agent()
    take_options(agent, typed)
    return {name: getattr(agent, name) for name in typed}


def test_a_text_can_be_emptied() -> None:
    assert _taken(greeting="Good day") == {"greeting": "Good day"}
    assert _taken(greeting="")["greeting"] == ""


def test_another_field_that_is_empty_has_its_default() -> None:
    agent = Agent(nickname="Ann", greetings=7)
    take_options(agent, {"nickname": "", "greetings": None})
    assert agent.nickname is None
    assert agent.greetings == 3


def test_invalid_values_are_reported_by_field() -> None:
    with pytest.raises(ValidationError) as caught:
        take_options(Agent(), {"greetings": "many"})
    assert list(caught.value.message_dict) == ["greetings"]
