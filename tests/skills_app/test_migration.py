"""Skills as the last release stored them, carried to the newest state."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from agents.models import Agent
from agents.selectors.memory import list_memory_entries
from skills_app.models import Skill, SkillVersion
from skills_app.package import PackageFile, hash_files
from skills_app.scopes import agent_scope
from skills_app.services.versions import version_files
from tests.support.runs import drive_to_end, make_user, script_file, start_run
from tests.support.skills import skill_text

pytestmark = pytest.mark.django_db(transaction=True)

LAST_RELEASE = [("agents", "0006_obsolete_notifications"), ("skills_app", "0001_initial")]


@pytest.fixture
def _without_gc() -> Iterator[None]:
    """A third of the time: what Django renders of the models is garbage only at the end."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def last_release(_without_gc: None) -> Iterator[Any]:
    """The models as they were; the newest state comes back at the end."""
    executor = MigrationExecutor(connection)
    newest = executor.loader.graph.leaf_nodes()
    executor.migrate(LAST_RELEASE)
    try:
        yield executor.loader.project_state(LAST_RELEASE).apps
    finally:
        MigrationExecutor(connection).migrate(newest)


def carry() -> None:
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())


def test_skills_of_agents_keep_what_they_say_and_runs_load_them(
    last_release: Any, tmp_path: Path
) -> None:
    user = make_user()
    turns = [
        {"tool_calls": [{"name": "load_skill", "input": {"name": "beans"}}]},
        {"text": "Done."},
    ]
    agent = last_release.get_model("agents", "Agent").objects.create(
        name="Tester",
        slug="tester",
        provider="scripted",
        model=script_file(tmp_path, turns),
        sandbox=False,
        owner_id=user.pk,
    )
    old_skill = last_release.get_model("skills_app", "Skill")
    old_version = last_release.get_model("skills_app", "SkillVersion")
    texts = [skill_text(body="Count."), skill_text(body="Count über twice.", allowed_tools="Read")]
    beans = old_skill.objects.create(agent=agent, name="beans", description="Counts.", version=2)
    for number, text in enumerate(texts, start=1):
        old_version.objects.create(
            skill=beans, number=number, content=text, trust="reviewed", source="approval"
        )
    gone = old_skill.objects.create(
        agent=agent, name="gone", description="x", version=2, is_deleted=True
    )
    text = skill_text("gone")
    old_version.objects.create(skill=gone, number=1, content=text, trust="imported", source="api")
    old_version.objects.create(skill=gone, number=2, content=None, trust="imported", source="api")

    carry()

    skill = Skill.objects.get(name="beans")
    assert skill.scope == agent_scope(agent.pk)
    versions = list(SkillVersion.objects.filter(skill=skill).order_by("number"))
    assert [version.content for version in versions] == texts
    assert [version.fields.allowed_tools for version in versions] == [None, ("Read",)]
    assert skill.current == versions[1]
    assert versions[1].trust == "reviewed"
    for version, content in zip(versions, texts, strict=True):
        file = PackageFile("SKILL.md", content.encode())
        assert version_files(version.pk) == [file]
        assert version.content_hash == hash_files([("SKILL.md", False, file.sha256)])
        assert version.fields.name == "beans"
        assert (version.file_count, version.size_bytes) == (1, len(file.data))
    deleted = Skill.objects.get(name="gone")
    assert (deleted.is_deleted, deleted.current) == (True, None)
    assert version_files(deleted.versions.get(number=1).pk)[0].data == text.encode()

    now = Agent.objects.get(pk=agent.pk)
    assert "skills/beans.md" in {entry.path for entry in list_memory_entries(now.pk)}
    run = drive_to_end(start_run(user))
    assert run.status == "completed", run.error_message
    assert run.skill_set is not None
    own = run.skill_set.entries.filter(version__skill__agent=now)
    assert [entry.version for entry in own] == [versions[1]]
    loaded = run.tool_calls.get(tool="load_skill")
    assert "Count über twice." in loaded.result
