"""`vel features remove skills_app` in a database that has used skills."""

from __future__ import annotations

import pytest

from tests.agents.features.test_feature_command import lines_of
from tests.velproject.command import new_vel

STORE = """
import django; django.setup()
from agents.models import Run
from skills_app.actions.own_skills import create_own_skill
from skills_app.actions.sets import store_set
from skills_app.models import RunSkillSet, SkillUse, UseKind
from tests.support import site_writer
ann = site_writer.make_user("ann")
run = Run.objects.get(pk=site_writer.make_run("ann"))
agent = run.agent_version.agent
run.owner.is_superuser = True
run.owner.save()
skill = create_own_skill(
    agent, name="beans", description="Counts beans.", instructions="Count.", by=run.owner
)
RunSkillSet.objects.create(run=run, skill_set=store_set([skill.current]))
SkillUse.objects.create(run=run, version=skill.current, kind=UseKind.LOADED)
"""
LOOK = """
import django; django.setup()
from django.contrib.auth.models import Permission, User
from django.db import connection
from agents.models import Run, Thread
from agents.services.erasure.actions import erase_rows
Run.objects.update(status="completed")
erase_rows([Thread.objects.get().pk])
User.objects.get(username="ann").delete()
print(Run.objects.count(), Permission.objects.filter(content_type__app_label="skills_app").count(),
      [name for name in connection.introspection.table_names() if name.startswith("skills_app")])
"""
DISABLED = {"VEL_DISABLED_FEATURES": "skills_app"}


@pytest.mark.slow
def test_threads_and_users_can_be_deleted_afterwards() -> None:
    with new_vel() as vel:
        lines_of(vel, STORE)
        assert "tables of the feature skills_app" in vel("doctor", **DISABLED).stdout
        removed = vel("features", "remove", "skills_app", "--yes")
        assert removed.returncode == 0, removed.stderr
        assert "add skills_app to VEL_DISABLED_FEATURES" in removed.stdout
        assert lines_of(vel, LOOK, **DISABLED) == ["0 0 []"]
        assert "tables of the feature" not in vel("doctor", **DISABLED).stdout
