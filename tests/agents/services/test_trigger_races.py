"""Two processes with the same due trigger, and a process that is killed in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from agents.features.inbound_webhooks.deliveries import Delivered, deliver
from agents.features.inbound_webhooks.models import InboundWebhookDelivery
from agents.features.schedules.firing import fire_due
from agents.features.schedules.models import Schedule, ScheduleFiring
from agents.models import Run
from agents.services.request_rates import forget_shares
from agents.states import RunStatus
from tests.agents.api.rows import make_agent, make_user
from tests.agents.engine.by_hand import at_once
from tests.agents.features.inbound_webhooks.rows import BODY, make_inbound_webhook
from tests.agents.features.schedules.rows import fire_all, make_due, make_schedule
from tests.support.cluster import ROOT, database_url

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

ROUNDS = 15
DYING = """
import os, signal, django
django.setup()
from agents.features.schedules import firing
record = firing._record
def die(*args, **more):
    record(*args, **more)  # the run and the record of it are written, and nothing is committed
    os.kill(os.getpid(), signal.SIGKILL)
firing._record = die
firing.fire_due()
"""


def test_of_two_processes_one_starts_it():
    schedule = make_schedule(make_user("ada"), cron="", interval_seconds=3600)
    for number in range(ROUNDS):
        make_due(schedule, timedelta(hours=20 + number, seconds=30))
        ScheduleFiring.objects.all().delete()

        found = at_once(fire_due, fire_due, fire_due)

        assert not [each for each in found if isinstance(each, Exception)], found
        assert Run.objects.count() == number + 1
        assert ScheduleFiring.objects.count() == 1
        Run.objects.update(status=RunStatus.COMPLETED)


@pytest.mark.slow
def test_of_two_requests_with_one_id_one_starts_a_run():
    forget_shares()
    hook, _ = make_inbound_webhook(make_user("ada"), per_minute=600)
    for number in range(ROUNDS):
        found = at_once(*[lambda: deliver(hook, f"m{number}", BODY, {})] * 3)  # noqa: B023

        assert all(isinstance(each, Delivered) for each in found), found
        assert len({each.run for each in found}) == 1
        assert sorted(each.repeated for each in found) == [False, True, True]
        assert Run.objects.count() == number + 1
    assert InboundWebhookDelivery.objects.count() == ROUNDS


@pytest.mark.slow
def test_a_process_killed_before_the_commit_changes_nothing(tmp_path):
    schedule = make_schedule(make_user("ada"))
    due = make_due(schedule)
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "velproject.settings",
        "DATABASE_URL": database_url(),
        "VEL_DATA_DIR": str(tmp_path),
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run([sys.executable, "-c", DYING], env=environment, check=False, cwd=ROOT)

    assert done.returncode == -signal.SIGKILL
    assert not Run.objects.exists()
    assert not ScheduleFiring.objects.exists()
    assert fire_all() == 1
    assert Run.objects.count() == 1
    assert ScheduleFiring.objects.get().due_at == due
    assert Schedule.objects.get().due_at > timezone.now()


@pytest.mark.skipif(connection.vendor != "postgresql", reason="needs PostgreSQL")
def test_the_lock_of_one_process_does_not_block_other_runs():
    """A user starts a run while another process starts the run of a schedule."""
    from django.db import transaction

    ada = make_user("ada")
    agent = make_agent()
    make_due(make_schedule(ada, agent=agent))
    with transaction.atomic():
        assert fire_due()
        hook_run = at_once(lambda: make_inbound_webhook(ada, agent=agent))
    assert not isinstance(hook_run[0], Exception)
