"""The choice of an agent's toolbox in the admin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import override_settings
from django.urls import reverse

from agents.models import Agent
from tests.agents.admin import rows
from tests.agents.admin.pages import client_of, page_url
from tests.agents.admin.test_agents import ADD, form
from tests.sandbox.places import reachable_directory
from tests.support.toolboxes import put_toolbox

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def data() -> Iterator[Path]:
    with reachable_directory() as directory, override_settings(VEL={"DATA_DIR": directory}):
        put_toolbox(directory / "toolboxes")
        yield directory


def test_the_toolboxes_of_this_host_are_offered_and_saved() -> None:
    client = client_of(rows.superuser())
    page = client.get(reverse(ADD)).content.decode()
    assert '<option value="data">data</option>' in page
    client.post(reverse(ADD), form(toolbox="data"))
    assert Agent.objects.get().versions.get().spec["toolbox"] == "data"


@pytest.mark.slow_cases
@pytest.mark.parametrize("name", ["other", "../data", "data/../data"])
def test_an_unknown_one_is_an_error_at_its_field(name: str) -> None:
    page = client_of(rows.superuser()).post(reverse(ADD), form(toolbox=name))
    assert not Agent.objects.exists()
    [error] = page.context["adminform"].form.errors["toolbox"]
    assert f"There is no toolbox “{name}” on this host" in error
    assert "vel toolbox create" in error


def test_a_toolbox_missing_on_this_host_can_be_kept() -> None:
    agent = rows.agent("helper", toolbox="elsewhere")
    client = client_of(rows.superuser())
    page = client.get(page_url(agent)).content.decode()
    assert '<option value="elsewhere" selected>elsewhere (not on this host)</option>' in page
    client.post(page_url(agent), form(toolbox="elsewhere", description="New"))
    agent.refresh_from_db()
    assert (agent.toolbox, agent.description) == ("elsewhere", "New")


@pytest.mark.slow
def test_only_people_who_may_configure_sandboxes_choose_a_toolbox() -> None:
    agent = rows.agent("helper")
    editor = rows.staff("editor", "change_agent", "view_agent")
    client = client_of(editor)
    assert client.get(page_url(agent)).status_code == 200
    client.post(page_url(agent), form(toolbox="data", description="New"))
    agent.refresh_from_db()
    assert (agent.toolbox, agent.description) == ("", "New")
