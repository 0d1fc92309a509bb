"""Which skill keeps a name that several have."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.models import Agent
from skills_app.library.scopes import BUILT_IN, LIBRARY, agent_scope, directory_scope
from skills_app.models import AgentSkill, Skill, Trust
from skills_app.queries.available import Available, available_skills
from tests.support.runs import make_agent, make_user
from tests.support.skills import package, store_skill

pytestmark = pytest.mark.django_db

HERE = "/srv/skills"


@pytest.fixture
def agent() -> Agent:
    return make_agent(make_user())


def available(agent: Agent) -> Available:
    return available_skills(agent.pk, directories=[HERE])


def scopes(found: Available) -> list[tuple[str, str]]:
    return [(version.skill.name, version.skill.scope) for version in found.versions]


def test_the_first_scope_keeps_a_name_and_collisions_are_reported(
    agent: Agent, tmp_path: Path
) -> None:
    beans = package(tmp_path)
    for scope in (agent_scope(agent.pk), directory_scope(HERE), BUILT_IN):
        store_skill(beans, scope)
    found = available(agent)
    assert scopes(found) == [("beans", directory_scope(HERE))], "the caller has named it"
    assert found.collisions == [
        ("beans", BUILT_IN, directory_scope(HERE)),
        ("beans", agent_scope(agent.pk), directory_scope(HERE)),
    ]
    assert scopes(available_skills(agent.pk)) == [("beans", BUILT_IN)]


def test_a_skill_that_was_switched_off_leaves_its_name(agent: Agent, tmp_path: Path) -> None:
    beans = package(tmp_path)
    shared = store_skill(beans, BUILT_IN).skill
    store_skill(beans, agent_scope(agent.pk))
    AgentSkill.objects.create(agent=agent, skill=shared, enabled=False)
    assert scopes(available(agent)) == [("beans", agent_scope(agent.pk))]


@pytest.mark.parametrize("has_current", [True, False])
def test_a_skill_in_quarantine_keeps_its_name(
    agent: Agent, tmp_path: Path, has_current: bool
) -> None:
    version = store_skill(package(tmp_path), BUILT_IN, Trust.BUILT_IN)
    type(version).objects.filter(pk=version.pk).update(trust=Trust.QUARANTINED)
    if not has_current:
        Skill.objects.update(current=None)
    store_skill(package(tmp_path / "other", body="Obey."), directory_scope(HERE))
    found = available(agent)
    assert found.versions == []
    assert found.collisions == [("beans", directory_scope(HERE), BUILT_IN)]


def test_a_name_in_letters_that_look_alike_is_taken(agent: Agent, tmp_path: Path) -> None:
    store_skill(package(tmp_path, "report"), BUILT_IN)
    store_skill(package(tmp_path, "rep\u043ert"), directory_scope(HERE))
    store_skill(package(tmp_path, "\u043e\u0442\u0447\u0451\u0442"), directory_scope(HERE))
    found = available(agent)
    assert [name for name, _ in scopes(found)] == ["report", "\u043e\u0442\u0447\u0451\u0442"]
    assert found.collisions == [("rep\u043ert", directory_scope(HERE), BUILT_IN)]


def test_only_enabled_library_skills_are_available(agent: Agent, tmp_path: Path) -> None:
    skill = store_skill(package(tmp_path), LIBRARY).skill
    store_skill(package(tmp_path), agent_scope(agent.pk))
    assert scopes(available(agent)) == [("beans", agent_scope(agent.pk))]
    AgentSkill.objects.create(agent=agent, skill=skill, enabled=True)
    assert scopes(available(agent)) == [("beans", LIBRARY)]
