"""A run whose agent names a toolbox."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from agents.middleware.registry import toolset_for
from agents.models import Agent, ToolCall
from agents.services.placement import toolbox_here
from agents.spec import AgentSpec
from sandbox.toolboxes.build import IfPresent, ToolboxRequest, create_toolbox
from sandbox.toolboxes.find import find_toolbox
from sandbox.toolboxes.toolbox import ToolboxError
from tests.sandbox.places import reachable_directory
from tests.support.runs import drive_to_end, make_agent, make_user, script_file, start_run
from tests.support.toolboxes import put_toolbox
from tests.support.wheels import NO_INDEX, make_wheel
from velproject.doctor.features import check_needed_toolboxes
from velproject.doctor.findings import Level

NOON = datetime(2026, 3, 4, 12, 0)  # noqa: DTZ001  # in the thread's own time zone


@pytest.fixture
def data() -> Iterator[Path]:
    with (
        reachable_directory() as directory,
        override_settings(VEL={"DATA_DIR": directory, "SCRIPTS_DIR": Path("/")}),
    ):
        yield directory


def calls_of(tmp_path: Path, *calls: tuple[str, dict[str, Any]], **agent: Any) -> list[ToolCall]:
    user = make_user()
    turns = [{"tool_calls": [{"name": name, "input": given}]} for name, given in calls]
    model = script_file(tmp_path, [*turns, {"text": "Done."}])
    make_agent(user, sandbox=True, model=model, **agent)
    run = drive_to_end(start_run(user))
    assert run.status == "completed", run.error_message
    return list(ToolCall.objects.filter(run=run))


@pytest.mark.slow
@pytest.mark.bubblewrap
@pytest.mark.django_db(transaction=True)
def test_its_commands_and_its_python_have_the_packages(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in NO_INDEX.items():
        monkeypatch.setenv(name, value)
    request = ToolboxRequest("data", (str(make_wheel(tmp_path)),))
    create_toolbox(data / "toolboxes", request, IfPresent.REFUSE)
    python, shell = calls_of(
        tmp_path,
        ("execute_python", {"code": "import tiny; print(tiny.ANSWER)"}),
        ("execute", {"command": "python3 -c 'import tiny; print(tiny.ANSWER)'"}),
        toolbox="data",
    )
    for call in (python, shell):
        assert json.loads(str(call.result_content)) == {
            "success": True,
            "exit_code": 0,
            "stdout": "42\n",
        }


@pytest.mark.bubblewrap
@pytest.mark.django_db(transaction=True)
def test_without_it_nothing_is_executed_and_file_tools_work(tmp_path: Path, data: Path) -> None:
    python, shell, files = calls_of(
        tmp_path,
        ("execute_python", {"code": "print('which Python?')"}),
        ("execute", {"command": "echo which"}),
        ("write_file", {"path": "a.txt", "content": "a"}),
        toolbox="gone",
    )
    for call in (python, shell):
        assert (call.status, call.code) == ("failed", "sandbox")
        assert "There is no toolbox 'gone' on this host" in str(call.result_content)
        assert "which" not in str(call.result_content)
    assert files.status == "succeeded"


def test_with_several_hosts_the_error_names_the_host_and_the_way_out(data: Path) -> None:
    with pytest.raises(ToolboxError) as one_host:
        toolbox_here("gone")
    with (
        override_settings(VEL={"DATA_DIR": data, "SCRIPTS_DIR": Path("/"), "HOST": "two"}),
        pytest.raises(ToolboxError) as several,
    ):
        toolbox_here("gone")
    assert "vel toolbox create gone PACKAGE" in str(one_host.value)
    assert "host two" not in str(one_host.value)
    for words in ("vel toolbox create gone", "This is the host two", "vel toolbox show gone"):
        assert words in str(several.value)


@pytest.mark.django_db
def test_the_doctor_of_each_host_names_agents_without_their_toolbox(data: Path) -> None:
    user = make_user()
    put_toolbox(data / "toolboxes")
    for slug, name in (("a", "data"), ("b", "gone"), ("c", "gone"), ("d", "old")):
        make_agent(user, slug=slug, sandbox=True, toolbox=name)
    Agent.objects.filter(slug="d").update(is_active=False)
    (found,) = check_needed_toolboxes()
    assert (found.subject, found.level) == ("toolbox gone", Level.BROKEN)
    assert "(b, c)" in found.detail
    assert "vel toolbox create gone PACKAGE" in found.mend


@pytest.mark.bubblewrap
@pytest.mark.django_db(transaction=True)
def test_one_for_another_python_is_not_used(tmp_path: Path, data: Path) -> None:
    put_toolbox(data / "toolboxes", abi="cpython-39-x86_64-linux-gnu", python="3.9.1")
    [call] = calls_of(tmp_path, ("execute_python", {"code": "print('hi')"}), toolbox="data")
    assert call.code == "sandbox"
    assert "--replace" in str(call.result_content)


def spec(**fields: Any) -> AgentSpec:
    return AgentSpec(name="T", slug="t", provider="scripted", model="echo", **fields)


def prompt(agent: AgentSpec) -> str:
    return toolset_for(agent).system_prompt(agent, NOON)


@pytest.mark.parametrize("profile", ["full", "sandbox_only"])
def test_the_prompt_names_its_packages_in_one_short_sentence(data: Path, profile: str) -> None:
    put_toolbox(data / "toolboxes", packages=["matplotlib", "pandas"])
    without, with_it = prompt(spec(profile=profile)), prompt(spec(profile=profile, toolbox="data"))
    assert " Python has matplotlib, pandas." in with_it
    assert len(with_it) - len(without) == len(" Python has matplotlib, pandas.")


def test_the_prompt_stays_short_with_many_packages(data: Path) -> None:
    put_toolbox(data / "toolboxes", packages=[f"package-{number}" for number in range(200)])
    longer = len(prompt(spec(toolbox="data"))) - len(prompt(spec()))
    assert longer < 200


def test_the_prompt_does_not_promise_missing_packages(data: Path) -> None:
    assert prompt(spec(toolbox="gone")) == prompt(spec())


def test_the_prompt_names_the_installed_packages(data: Path) -> None:
    put_toolbox(data / "toolboxes", packages=["one"])
    put_toolbox(data / "toolboxes", packages=["two"])
    assert "Python has two." in prompt(spec(toolbox="data"))
    assert find_toolbox(data / "toolboxes", "data").packages == ("two",)
