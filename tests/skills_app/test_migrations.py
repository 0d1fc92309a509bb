"""Migrations of skills: each run keeps its skills, in both directions."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from agents.models import AgentVersion, Epoch, Run
from skills_app.actions.sets import store_set
from skills_app.models import RunSkillSet
from tests.support import site_writer

BEFORE = [("agents", "0012_memory"), ("skills_app", "0001_initial")]


def migrate(targets: list[tuple[str, str]] | None = None) -> None:
    executor = MigrationExecutor(connection)
    executor.migrate(targets or executor.loader.graph.leaf_nodes())


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_runs_keep_their_skills_and_epochs_what_is_in_their_prompts() -> None:
    site_writer.make_user("ada")
    begun = Run.objects.get(pk=site_writer.make_run("ada"))
    waiting = Run.objects.get(pk=site_writer.make_run("ada"))
    Run.objects.filter(pk=begun.pk).update(has_begun=True)
    Run.objects.filter(pk=waiting.pk).update(has_begun=False)
    skills = store_set([])
    RunSkillSet.objects.create(run=begun, skill_set=skills)
    version = AgentVersion.objects.get(pk=begun.agent_version_id)
    for number, keys in enumerate(({"skills": [7, 5]}, {}), 1):
        Epoch.objects.create(
            thread=begun.thread, number=number, agent_version=version, part_keys=keys, head={}
        )
    try:
        migrate(BEFORE)
        with connection.cursor() as cursor:
            cursor.execute("SELECT skill_set_id FROM agents_run WHERE id = %s", [begun.pk])
            assert cursor.fetchall() == [(skills.pk,)]
    finally:
        migrate()
    assert list(RunSkillSet.objects.values_list("run_id", "skill_set_id")) == [
        (begun.pk, skills.pk)
    ]
    assert Run.objects.get(pk=begun.pk).has_begun
    assert not Run.objects.get(pk=waiting.pk).has_begun
    keys_of = Epoch.objects.order_by("number").values_list("part_keys", flat=True)
    assert list(keys_of) == [{"skills": [7, 5]}, {}]
    assert "skills_app_runskillset_kept" not in connection.introspection.table_names()
