"""The agent of `vel TASK`, in the test's own database."""

from __future__ import annotations

import threading

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import modify_settings

from agents.doors.cli.errors import CliError
from agents.models import Agent, Run
from agents.services.runs.start import RunRequest
from velproject.cli.commands.runs.task_flags import AgentOptions, agent_slug, start_run


def options(**given: object) -> AgentOptions:
    none: dict[str, object] = dict.fromkeys(AgentOptions.__annotations__)
    several = dict.fromkeys(("approve", "fallback", "databases"), ())
    return AgentOptions(**{**none, **several, "provider": "scripted", **given})  # type: ignore[typeddict-item]


def request(owner: User) -> RunRequest:
    return RunRequest(agent=agent_slug(owner), message="go", executor="test", source="cli")


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_of_starts_at_the_same_moment_each_pins_its_own_flags() -> None:
    owner = User.objects.create(username="ada")
    tools = ["ls", "grep", "glob", "execute"]
    ready = threading.Barrier(len(tools))
    pinned: list[tuple[str, dict[str, bool]]] = []

    def start(tool: str) -> None:
        ready.wait()
        try:
            for _ in range(5):
                run = start_run(request(owner), options(approve=(tool,)), owner)
                pinned.append((tool, run.agent_version.spec["interrupt_on"]))
        finally:
            connection.close()

    threads = [threading.Thread(target=start, args=(tool,)) for tool in tools]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(pinned) == 20
    assert all(interrupts == {tool: True} for tool, interrupts in pinned)


@pytest.mark.django_db
def test_flags_of_an_earlier_start_do_not_linger() -> None:
    owner = User.objects.create(username="ada")
    start_run(
        request(owner),
        options(approve=("ls",), fallback=(("openai", "gpt-6"),), no_sandbox=True),
        owner,
    )
    assert Agent.objects.get().fallbacks == [{"provider": "openai", "model": "gpt-6"}]
    start_run(request(owner), options(max_turns=3, profile="sandbox_only"), owner)
    assert Agent.objects.get().profile == "sandbox_only"
    run = start_run(request(owner), options(), owner)
    spec = run.agent_version.spec
    assert spec["interrupt_on"] == {}
    assert spec["max_turns"] == 500
    assert spec.get("fallbacks", []) == []
    assert spec["sandbox"] is True
    assert spec["profile"] == "full"


@pytest.mark.django_db
def test_an_agent_that_somebody_else_put_there_is_not_used() -> None:
    owner = User.objects.create(username="ada")
    other = User.objects.create(username="mallory")
    Agent.objects.create(slug=agent_slug(owner), name="trap", owner=other)
    with pytest.raises(CliError, match="belongs to another user"):
        start_run(request(owner), options(), owner)
    assert not Run.objects.exists()


@pytest.mark.django_db
@modify_settings(INSTALLED_APPS={"remove": "agents.features.fallbacks"})
def test_a_flag_of_a_feature_that_is_not_installed_is_refused() -> None:
    owner = User.objects.create(username="ada")
    start_run(request(owner), options(), owner)
    with pytest.raises(CliError, match="--fallback: the feature"):
        start_run(request(owner), options(fallback=(("openai", "gpt-6"),)), owner)
