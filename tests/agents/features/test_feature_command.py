"""`vel features`: each test on a copy of a database with rows of several features."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.velproject.command import DEADLINE, Vel, new_vel

STORE = """
import django; django.setup()
from django.contrib.auth.models import User
from agents.features.credentials.public import Credential
from agents.features.databases.public import DatabaseConnection
from agents.features.inbound_webhooks.actions import DayBudget, create_inbound_webhook
from agents.features.inbound_webhooks.models import InboundWebhook
from agents.features.notifications.models import Notification, NotificationTarget
from agents.models import Agent, Run
from agents.secret_text import SecretText
from agents.services.agent_definitions.actions import save_agent
from agents.services.runs.start import RunRequest, create_run

def run_of(owner, agent, **more):
    return create_run(RunRequest(agent, "Hello", **more), owner=owner).run

ann, bob, cleo, dan = map(User.objects.create_user, ["ann", "bob", "cleo", "dan"])
Credential.objects.create(provider="slack", owner=ann, secret=SecretText.seal("xoxb-secret"))

shop = DatabaseConnection.objects.create(name="shop", url=SecretText.seal("sqlite:////x.db"))
agent = Agent(name="Ada", slug="ada", owner=bob, provider="scripted", model="echo", sandbox=False)
save_agent(agent, related={"databases": [shop]})
run_of(bob, "ada")

agent = Agent.objects.create(slug="writer", name="Writer", everyone=True)
hook = InboundWebhook(name="Issues", owner=cleo, agent=agent, message="Hello")
create_inbound_webhook(hook, by=cleo, budget=DayBudget(max_tokens=9))
run_of(cleo, "writer", source="hook", trigger=hook.pk)

run = run_of(dan, "writer")
Run.objects.filter(pk=run.pk).update(status="completed")
target = NotificationTarget.objects.create(kind="webhook", address="https://a.example/", secret="s")
Notification.objects.create(target=target, type="approval.requested", subject_id="x", run=run)
"""
LOOK = """
import django; django.setup()
from django.contrib.auth.models import Permission, User
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from agents.features.removal import leftovers
User.objects.get(username="ann").delete()
print(ContentType.objects.filter(app_label="vel_credentials").count(),
      Permission.objects.filter(codename="share_credential").count(), list(leftovers()),
      [name for name in connection.introspection.table_names() if name.startswith("vel_cred")])
"""
LOOK_AT_AGENT = """
import django; django.setup()
from django.contrib.auth.models import Permission
from django.db import connection
from agents.features.removal import leftovers
from agents.models import Agent
from agents.services.agent_definitions.actions import current_version
agent = Agent.objects.get(slug="ada")
before = agent.version
after = current_version(agent)
print(before, after.number, "databases" in after.spec,
      Permission.objects.filter(codename="configure_database").count(), list(leftovers()),
      [name for name in connection.introspection.table_names() if name.startswith("vel_databases")])
"""
LOOK_FOR_TRIGGERS = """
import django; django.setup()
from django.contrib.auth.models import Permission, User
from django.db import connection
from agents.features.removal import leftovers
from agents.features.budgets.models import Budget
from agents.models import Run
runs = Run.objects.filter(owner__username="cleo")
print(Budget.objects.count(), list(runs.values_list("trigger", flat=True)),
      Permission.objects.filter(codename__contains="inboundwebhook").count(), list(leftovers()),
      [name for name in connection.introspection.table_names() if "inboundwebhook" in name])
User.objects.get(username="cleo").delete()
print(runs.count())
"""
ERASE = """
import django; django.setup()
from django.contrib.auth.models import Permission, User
from django.db import connection
from agents.features.removal import leftovers
from agents.models import Thread
from agents.services.erasure.actions import erase_thread, finish_erasures
dan = User.objects.get(username="dan")
erase_thread(Thread.objects.get(owner=dan).pk, by=dan)
finish_erasures()
print(Thread.objects.filter(owner=dan).count(),
      Permission.objects.filter(codename__contains="notification").count(), list(leftovers()),
      [name for name in connection.introspection.table_names() if "notification" in name])
"""


@pytest.fixture(scope="module")
def filled() -> Iterator[Vel]:
    with new_vel() as vel:
        lines_of(vel, STORE)
        yield vel


@pytest.fixture
def vel(filled: Vel) -> Iterator[Vel]:
    with new_vel() as vel:
        shutil.copytree(filled.data, vel.data, dirs_exist_ok=True)
        yield vel


def lines_of(vel: Vel, script: str, **environment: str) -> list[str]:
    """Run a Python script and return the lines that it prints."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=vel.env(DJANGO_SETTINGS_MODULE="velproject.settings", **environment),
        cwd=vel.data,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


DISABLED = {"VEL_DISABLED_FEATURES": "credentials,slack,google_workspace"}
WITHOUT_OTHERS = {"VEL_DISABLED_FEATURES": "slack,google_workspace"}


@pytest.mark.slow
def test_a_removed_feature_leaves_nothing_that_hinders(vel: Vel) -> None:
    needed = vel("features", "remove", "credentials", "--yes")
    assert needed.returncode == 1
    assert "is needed by vel_slack, vel_google_workspace" in needed.stderr
    removed = vel("features", "remove", "credentials", "--yes", **WITHOUT_OTHERS)
    assert removed.returncode == 0, removed.stderr
    assert "add credentials to VEL_DISABLED_FEATURES" in removed.stdout
    assert lines_of(vel, LOOK, **DISABLED) == ["0 0 [] []"]


@pytest.mark.slow
def test_agents_lose_the_rows_of_a_removed_feature(vel: Vel) -> None:
    removed = vel("features", "remove", "databases", "--yes")
    assert removed.returncode == 0, removed.stderr
    disabled = {"VEL_DISABLED_FEATURES": "databases"}
    assert lines_of(vel, LOOK_AT_AGENT, **disabled) == ["1 2 False 0 [] []"]
    assert "databases" not in vel("--help", **disabled).stdout


@pytest.mark.slow
def test_threads_can_be_erased_after_the_notifications_were_removed(vel: Vel) -> None:
    removed = vel("features", "remove", "notifications", "--yes")
    assert removed.returncode == 0, removed.stderr
    disabled = {"VEL_DISABLED_FEATURES": "notifications"}
    assert lines_of(vel, ERASE, **disabled) == ["0 0 [] []"]
    assert "notifications" not in vel("--help", **disabled).stdout


@pytest.mark.slow
def test_the_doctor_names_a_feature_that_was_only_disabled(vel: Vel) -> None:
    assert "tables of the feature" not in vel("doctor").stdout
    found = vel("doctor", **DISABLED).stdout
    assert "tables of the feature vel_credentials" in found


@pytest.mark.slow
def test_runs_of_a_removed_kind_of_triggers_stay(vel: Vel) -> None:
    removed = vel("features", "remove", "inbound_webhooks", "--yes")
    assert removed.returncode == 0, removed.stderr
    looked = lines_of(vel, LOOK_FOR_TRIGGERS, VEL_DISABLED_FEATURES="inbound_webhooks")
    assert looked == ["0 [None] 0 [] []", "0"]


@pytest.mark.slow
def test_features_are_listed_with_their_rows(vel: Vel) -> None:
    listed = vel("features", "list")
    rows = dict(line.split()[:2] for line in listed.stdout.splitlines())
    assert rows["vel_credentials"] == rows["vel_databases"] == "1"
    assert rows["vel_slack"] == "0"


@pytest.mark.slow
def test_an_unknown_feature_is_an_error_with_the_known_ones(vel: Vel) -> None:
    for failed in (
        vel("features", "remove", "slak", "--yes"),
        vel("features", "list", VEL_DISABLED_FEATURES="slak"),
    ):
        assert failed.returncode == 1
        assert "slak" in failed.stderr
        assert "google_workspace" in failed.stderr
