"""Providers, models and directories of the settings that cannot be used stop a start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from pytest_django.fixtures import Settings

from agents.engine.worker import Worker
from agents.ids import own_executor
from agents.services.agent_definitions.settings_places import provider_problem

IDS = ("vel.E015", "vel.E016", "vel.E017")


def found() -> list[tuple[str, str]]:
    return [(str(one.id), one.msg) for one in run_checks() if one.id in IDS]


def use(settings: Settings, **values: Any) -> None:
    settings.VEL = {**settings.VEL, "PROVIDER": "", "MODEL": "", **values}


def test_settings_without_a_provider_and_a_model_pass(settings: Settings) -> None:
    use(settings)
    assert found() == []


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"PROVIDER": "opnai"}, "VEL_PROVIDER='opnai' (settings.VEL[\"PROVIDER\"]): there is no"),
        ({"PROVIDER": "scripted", "MODEL": "demoo"}, "VEL_MODEL='demoo'"),
        ({"PROVIDER": "scripted", "MODEL": "demoo"}, "called 'demoo'; there are "),
        ({"MODEL": "claude-nope"}, "Set ANTHROPIC_API_KEY, or VEL_PROVIDER"),
        (
            {"MODEL": "gpt-6.2-sol", "ANTHROPIC_API_KEY": "k"},
            "a model of openai, and agents that name no provider ask anthropic. "
            "Set VEL_PROVIDER=openai and OPENAI_API_KEY",
        ),
        ({"PROVIDER": "openai-chat", "MODEL": "claude-sonnet-5-5"}, "a model of anthropic"),
        ({"PROVIDER": "anthropic", "MODEL": "gemini-3.8-flash"}, "VEL_PROVIDER=google and GOOGLE"),
    ],
)
def test_a_model_that_cannot_be_asked_is_an_error(
    settings: Settings, values: dict[str, str], told: str
) -> None:
    use(settings, **values)
    ((check_id, message),) = found()
    assert check_id == "vel.E015"
    assert told in message
    assert message.endswith(" out.")


@pytest.mark.parametrize(
    "values",
    [
        {"PROVIDER": "anthropic", "MODEL": "claude-of-next-year"},
        {"PROVIDER": "openai", "MODEL": "gpt-6.2-sol"},
        {"PROVIDER": "openai-responses", "MODEL": "gpt-of-next-year"},
        {"PROVIDER": "scripted", "MODEL": "echo"},
        {"PROVIDER": "scripted", "MODEL": "file:story.json"},
        {"MODEL": "gpt-6.2-sol", "ANTHROPIC_BASE_URL": "http://127.0.0.1:9/"},
        {"PROVIDER": "openai", "MODEL": "claude-5", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"},
    ],
)
def test_an_unknown_model_may_exist(settings: Settings, values: dict[str, str]) -> None:
    use(settings, **values)
    assert found() == []


def test_a_program_may_name_its_own_model_where_that_of_the_settings_lacks_a_key(
    settings: Settings,
) -> None:
    use(settings, MODEL="claude-sonnet-5-5")
    assert provider_problem() == ""


def test_a_directory_that_cannot_be_read_is_an_error(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    settings.VEL_SKILLS = {"DIRECTORIES": (str(tmp_path / "gone"), str(tmp_path), str(file))}
    use(settings, SCRIPTS_DIR=str(tmp_path / "scripts"))
    told = sorted(found(), reverse=True)
    assert [check_id for check_id, _ in told] == ["vel.E017", "vel.E016", "vel.E016"]
    for (_, message), name in zip(told, ("scripts", "gone", "file"), strict=True):
        assert f"'{tmp_path / name}' cannot be read" in message


@pytest.mark.parametrize("value", ["PROVIDER", "DIRECTORIES"])
def test_a_process_that_drives_its_own_runs_refuses_to_start(
    settings: Settings, tmp_path: Path, value: str
) -> None:
    use(settings)
    if value == "PROVIDER":
        use(settings, PROVIDER="opnai")
    else:
        settings.VEL_SKILLS = {"DIRECTORIES": (str(tmp_path / "gone"),)}
    with pytest.raises(ImproperlyConfigured, match=r"opnai|gone"):
        Worker(executor=own_executor())


def test_a_worker_that_replaces_another_starts_while_a_directory_is_away(
    settings: Settings, tmp_path: Path
) -> None:
    settings.VEL_SKILLS = {"DIRECTORIES": (str(tmp_path / "gone"),)}
    assert Worker().executor == "pool"
