"""What a person does with runs that a restore holds: see them, resume them, and lose nothing."""

from __future__ import annotations

import json

import pytest
from django.db import transaction
from django.urls import reverse

from agents.features.operations.backups.review import make_safe
from agents.models import POOL, RESTORED, AuditEntry, Run
from agents.states import RunStatus, WaitReason
from tests.agents.admin import rows
from tests.agents.admin.pages import client_of, messages_of, page_url, text_of
from tests.agents.features.operations.backups.installation import Installation, whole_runs
from tests.support.runs import wait_until
from tests.support.subagents import delegate
from tests.velproject.command import DEADLINE, say

HELD = "held after a restore"
LOG = "workspaces/*/workspace/log.txt"


@pytest.mark.bubblewrap
def test_a_command_of_a_held_run_is_not_repeated_when_a_person_resumes_the_run(
    installation: Installation,
) -> None:
    old = installation.old.vel
    command = "echo once >> /sandbox/workspace/log.txt; exec sleep 600"
    flags = old.script(
        say("", ("execute", {"command": command})), say("I looked first."), name="held.json"
    )
    process = old.start(*flags, "go")
    assert process.stdout is not None
    try:
        # The shell makes the file before `echo` writes into it.
        wait_until(
            lambda: any(log.read_text() for log in old.data.glob(LOG)), "the command in the sandbox"
        )
    finally:
        process.kill()
        process.wait(DEADLINE)
        process.stdout.close()
    ((run,),) = installation.old.rows("SELECT id FROM agents_run ORDER BY created_at DESC LIMIT 1")
    installation.backup()
    vel = installation.restored()
    (line,) = (
        each for each in vel("runs", "list", "--held").stdout.splitlines() if each.startswith(run)
    )
    assert f"running ({HELD})" in line
    listed = vel("runs", "list", "--json").stdout.splitlines()
    held = {each["id"]: each["held"] for each in map(json.loads, listed)}
    assert held.pop(run) is True
    assert not any(held.values())
    resumed = vel("runs", "resume", run)
    assert (resumed.returncode, resumed.stdout) == (0, "I looked first.\n"), resumed.stderr
    (log,) = vel.data.glob(LOG)
    assert log.read_text() == "once\n"
    (call,) = vel.stored(f"SELECT * FROM agents_toolcall WHERE run_id = '{run}'")
    assert call["status"] == "interrupted"
    assert "may have" in call["result"]
    assert run not in vel("runs", "list", "--held", "--all").stdout
    whole_runs(vel.data / "vel.sqlite3")


@pytest.mark.django_db
def test_the_admin_resumes_a_held_run_that_waits_for_its_subagents() -> None:
    person = rows.superuser()
    parent = rows.run(person)
    with transaction.atomic():
        (child,) = delegate(parent, "Look around")
    rows.put(child, RunStatus.RUNNING)
    rows.put(parent, RunStatus.WAITING, wait_reason=WaitReason.CHILDREN)
    make_safe("20260101T000000Z-00000000", "2026-01-01", revoke_tokens=False)
    assert set(Run.objects.values_list("executor", flat=True)) == {RESTORED}
    client = client_of(person)
    assert HELD in text_of(client.get(page_url(parent)))
    page = reverse("web:run", args=[parent.pk])
    assert "This run is held for review" in text_of(client.get(page))
    address = reverse("api:run", args=[parent.pk])
    assert client.get(address).json()["held"] is True
    said = messages_of(client.post(page_url(parent), {"operation": "resume"}, follow=True))
    assert said == [f"Run {parent.pk}: handed to the workers."]
    assert set(Run.objects.values_list("executor", flat=True)) == {POOL}
    assert AuditEntry.objects.filter(action="run.resumed").count() == 1
    assert HELD not in text_of(client.get(page_url(parent)))
    assert "This run is held for review" not in text_of(client.get(page))
    assert client.get(address).json()["held"] is False
    again = messages_of(client.post(page_url(parent), {"operation": "resume"}, follow=True))
    assert "continues when its subagents have ended" in again[0]
