"""An agent has one definition: a field of one class is available at every door."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.urls import reverse

from agents.agent_files.shape import agent_schema, ambiguous_options
from agents.kernel.options import AgentOptions
from agents.middleware.custom.toolkit import Toolkit
from agents.models import Agent
from agents.sdk.config import DeepAgentConfig
from agents.sdk.rows.definition import Definition
from agents.services.agent_definitions.actions import current_version, save_agent
from agents.services.agent_definitions.files import InvalidAgentFile, carry_out_import, export_agent
from agents.spec import AgentSpec
from tests.agents.admin import rows
from tests.agents.admin.pages import client_of, text_of
from tests.agents.admin.test_agents import ADD, form
from tests.agents.api.rows import client_for
from velproject.doctor.features import check_features

pytestmark = pytest.mark.django_db

FILES = {
    "__init__.py": "",
    "apps.py": """
from agents.kernel.features import FeatureConfig


class ToneConfig(FeatureConfig):
    name = "feature_with_a_tone"
    label = "feature_with_a_tone"
""",
    "options.py": """
from typing import Annotated, Literal

from pydantic import Field

from agents.kernel.options import AgentOptions, Labels


class ToneOptions(AgentOptions):
    title = "Tone"

    tone: Annotated[Literal["plain", "warm"], Labels({"warm": "warm: it greets"})] = Field(
        default="plain", description="How it talks."
    )


OPTIONS = [ToneOptions]
""",
}


@pytest.fixture
def tone(
    request: Any, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    """Return the class of a feature with only the files `apps.py` and `options.py`.

    A parameter is the name of its option.
    """
    option = getattr(request, "param", "tone")
    place = tmp_path / "feature_with_a_tone"
    place.mkdir()
    for name, text in FILES.items():
        (place / name).write_text(text.replace("    tone:", f"    {option}:"))
    monkeypatch.syspath_prepend(str(tmp_path))
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "feature_with_a_tone"]
    from feature_with_a_tone.options import ToneOptions

    yield ToneOptions
    for name in [name for name in sys.modules if name.split(".")[0] == "feature_with_a_tone"]:
        del sys.modules[name]


NAMES = ["versions", "owner", "slug", "databases", "save"]


@pytest.mark.parametrize("tone", NAMES, indirect=True)
def test_an_option_with_the_name_of_something_else_is_an_error(tone: type[AgentOptions]) -> None:
    assert ambiguous_options(dir(Agent)) == list(tone.model_fields)


def test_a_new_option_needs_no_migration(tone: type[AgentOptions]) -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


def test_a_new_option_is_a_field_of_files_and_of_their_schema(tone: type[AgentOptions]) -> None:
    root = rows.superuser()
    assert agent_schema()["properties"]["tone"]["enum"] == ["plain", "warm"]
    text = "name: Ada\nslug: ada\ntone: warm\n"
    agent, _ = carry_out_import(text, by=root, known_tools=())
    assert export_agent(agent, by=root) == text
    with pytest.raises(InvalidAgentFile) as caught:
        carry_out_import(text.replace("warm", "loud"), by=root, known_tools=())
    assert [problem.place for problem in caught.value.problems] == ["tone"]


def test_a_new_option_is_a_field_of_the_form_with_its_texts(tone: type[AgentOptions]) -> None:
    client = client_of(rows.superuser())
    page = text_of(client.get(reverse(ADD)))
    client.post(reverse(ADD), form(tone="warm"))
    assert "How it talks." in page
    assert "warm: it greets" in page
    assert Agent.objects.get().tone == "warm"


def test_a_new_option_is_in_the_rest_api_and_in_each_version(tone: type[AgentOptions]) -> None:
    agent = save_agent(Agent(name="Ada", slug="ada", everyone=True, tone="warm"))
    answer = client_for(rows.user()).get("/api/v1/agents/ada").json()
    assert answer["options"]["tone"] == "warm"
    assert AgentSpec.model_validate(current_version(agent).spec).option(tone).tone == "warm"


def test_a_program_gives_options_that_have_no_argument_by_name(tone: type[AgentOptions]) -> None:
    given = {"tone": "warm", "general_subagent": False}
    config = DeepAgentConfig(model={"provider": "scripted"}, options=given)
    agent = Definition.of(config, Toolkit(), ()).save(rows.user())
    assert (agent.tone, agent.general_subagent) == ("warm", False)


def test_an_option_of_a_missing_feature_is_kept_and_reported() -> None:
    agent = save_agent(Agent(name="Ada", slug="ada", definition={"tone": "warm"}))
    assert current_version(agent).spec["tone"] == "warm"
    assert agent.versions.count() == 1
    [finding] = check_features()
    assert "the agent ada has options of features that are not installed: tone" in finding.detail


def test_a_version_without_a_later_field_is_still_the_current_one() -> None:
    agent = save_agent(Agent(name="Ada", slug="ada"))
    version = agent.versions.get()
    version.spec = {name: value for name, value in version.spec.items() if name != "on_stuck"}
    version.save()
    save_agent(agent)
    assert current_version(agent) == version
    assert agent.versions.count() == 1


def test_every_field_of_an_agent_is_declared() -> None:
    with pytest.raises(TypeError, match="tone"):
        Agent(name="Ada", slug="ada", tone="warm")
    with pytest.raises(AttributeError):
        _ = Agent().tone
