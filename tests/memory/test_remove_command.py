"""`vel features remove memory` in a database that has used the memory."""

from __future__ import annotations

import pytest

from tests.agents.features.test_feature_command import lines_of
from tests.velproject.command import new_vel

STORE = """
import django; django.setup()
from tests.support import site_writer
site_writer.make_user("ann")
site_writer.ask_memory(site_writer.make_run("ann"), "knowledge/a.md", "Beans.")
"""
LOOK = """
import django; django.setup()
from django.contrib.auth.models import Permission, User
from django.db import connection
from agents.models import ApprovalRequest, Run, Thread
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from agents.services.erasure.actions import erase_rows
request = ApprovalRequest.objects.get()
ann = User.objects.get(username="ann")
print(decide_approval(request.pk, DecisionRequest("reject"), by=ann).status)
Run.objects.update(status="completed")
erase_rows([Thread.objects.get().pk])
ann.delete()
print(Run.objects.count(), Permission.objects.filter(content_type__app_label="memory").count(),
      [name for name in connection.introspection.table_names() if name.startswith("memory_")])
"""
DISABLED = {"VEL_DISABLED_FEATURES": "memory"}


@pytest.mark.slow
def test_threads_and_users_can_be_deleted_afterwards() -> None:
    with new_vel() as vel:
        lines_of(vel, STORE)
        assert "tables of the feature memory" in vel("doctor", **DISABLED).stdout
        removed = vel("features", "remove", "memory", "--yes")
        assert removed.returncode == 0, removed.stderr
        assert "add memory to VEL_DISABLED_FEATURES" in removed.stdout
        assert lines_of(vel, LOOK, **DISABLED) == ["decided", "0 0 []"]
        assert "tables of the feature" not in vel("doctor", **DISABLED).stdout
