"""`vel features`: each command in a process of its own, on a database of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.sandbox.places import reachable_directory
from tests.support.migrated import copy_sqlite

ROOT = Path(__file__).parents[3]
STORE = """
import django; django.setup()
from django.contrib.auth.models import Permission, User
from agents.features.credentials.public import Credential
from agents.secret_text import SecretText
ann = User.objects.create_user("ann")
Credential.objects.create(provider="slack", owner=ann, secret=SecretText.seal("xoxb-secret"))
"""
LOOK = """
import django; django.setup()
from django.contrib.auth.models import Permission, User
from django.contrib.contenttypes.models import ContentType
from django.db import connection
User.objects.get(username="ann").delete()
print(ContentType.objects.filter(app_label="vel_credentials").count(),
      Permission.objects.filter(codename="share_credential").count(),
      [name for name in connection.introspection.table_names() if name.startswith("vel_cred")])
"""
STORE_DATABASE = """
import django; django.setup()
from django.contrib.auth.models import User
from agents.features.databases.public import DatabaseConnection
from agents.models import Agent
from agents.secret_text import SecretText
from agents.services.agents import save_agent
from agents.services.runs import RunRequest, create_run
ann = User.objects.create_user("ann")
shop = DatabaseConnection.objects.create(name="shop", url=SecretText.seal("sqlite:////x.db"))
agent = Agent(name="Ada", slug="ada", owner=ann, provider="scripted", model="echo", sandbox=False)
save_agent(agent, related={"databases": [shop]})
create_run(RunRequest(agent="ada", message="Hello"), owner=ann)
"""
LOOK_AT_AGENT = """
import django; django.setup()
from django.contrib.auth.models import Permission, User
from django.db import connection
from agents.models import Agent
from agents.services.agents import current_version
[agent] = Agent.objects.all()
before = agent.version
after = current_version(agent)
print(before, after.number, "databases" in after.spec,
      Permission.objects.filter(codename="configure_database").count(),
      [name for name in connection.introspection.table_names() if name.startswith("vel_databases")])
"""
STORE_TRIGGERS = """
import django; django.setup()
from django.contrib.auth.models import User
from agents.features.inbound_webhooks.actions import DayBudget, create_inbound_webhook
from agents.features.inbound_webhooks.models import InboundWebhook
from agents.models import Agent, Run
from agents.services.runs import RunRequest, create_run
ann = User.objects.create_user("ann")
agent = Agent.objects.create(slug="writer", name="Writer", everyone=True)
hook = InboundWebhook(name="Issues", owner=ann, agent=agent, message="Hello")
create_inbound_webhook(hook, by=ann, budget=DayBudget(max_tokens=9))
create_run(RunRequest("writer", "Hello", source="hook", trigger=hook.pk), owner=ann)
"""
LOOK_FOR_TRIGGERS = """
import django; django.setup()
from django.contrib.auth.models import Permission, User
from django.db import connection
from agents.features.budgets.models import Budget
from agents.models import Run
print(Budget.objects.count(), list(Run.objects.values_list("trigger", flat=True)),
      Permission.objects.filter(codename__contains="inboundwebhook").count(),
      [name for name in connection.introspection.table_names() if "inboundwebhook" in name])
User.objects.get(username="ann").delete()
print(Run.objects.count())
"""
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def python() -> Iterator[Command]:
    with reachable_directory() as data:
        copy_sqlite(data / "vel.sqlite3")

        def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
            environment = {
                **os.environ,
                "DATABASE_URL": "",
                "DJANGO_SETTINGS_MODULE": "velproject.settings",
                "PYTHONPATH": str(ROOT),
                "VEL_DATA_DIR": str(data),
                **more,
            }
            return subprocess.run(
                [sys.executable, *arguments],
                env=environment,
                capture_output=True,
                text=True,
                timeout=300,
            )

        yield run


def vel(python: Command, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return python("-m", "velproject.cli", *arguments, **more)


DISABLED = {"VEL_DISABLED_FEATURES": "credentials,slack,google_workspace"}
WITHOUT_OTHERS = {"VEL_DISABLED_FEATURES": "slack,google_workspace"}


def test_a_removed_feature_leaves_nothing_that_hinders(python: Command) -> None:
    assert python("-c", STORE).returncode == 0
    needed = vel(python, "features", "remove", "credentials", "--yes")
    assert needed.returncode == 1
    assert "is needed by vel_slack, vel_google_workspace" in needed.stderr
    removed = vel(python, "features", "remove", "credentials", "--yes", **WITHOUT_OTHERS)
    assert removed.returncode == 0, removed.stderr
    assert "add credentials to VEL_DISABLED_FEATURES" in removed.stdout
    looked = python("-c", LOOK, **DISABLED)
    assert looked.stdout.split("\n")[-2] == "0 0 []", looked.stderr
    assert "tables of the feature" not in vel(python, "doctor", **DISABLED).stdout


def test_agents_lose_the_rows_of_a_removed_feature(python: Command) -> None:
    stored = python("-c", STORE_DATABASE)
    assert stored.returncode == 0, stored.stderr
    removed = vel(python, "features", "remove", "databases", "--yes")
    assert removed.returncode == 0, removed.stderr
    disabled = {"VEL_DISABLED_FEATURES": "databases"}
    looked = python("-c", LOOK_AT_AGENT, **disabled)
    assert looked.stdout.split("\n")[-2] == "1 2 False 0 []", looked.stderr
    assert "databases" not in vel(python, "--help", **disabled).stdout
    assert "tables of the feature" not in vel(python, "doctor", **disabled).stdout


TELL = """
import django; django.setup()
from django.contrib.auth.models import User
from agents.features.notifications.models import Notification, NotificationTarget
from agents.models import Run
from tests.agents.api.rows import make_agent, make_run
ann = User.objects.create_user("ann")
make_agent(sandbox=False)
run = make_run(ann)
Run.objects.update(status="completed")
target = NotificationTarget.objects.create(kind="webhook", address="https://a.example/", secret="s")
Notification.objects.create(target=target, type="approval.requested", subject_id="x", run=run)
"""
ERASE = """
import django; django.setup()
from django.contrib.auth.models import Permission, User
from agents.models import Thread
from agents.services.erasure import erase_thread, finish_erasures
ann = User.objects.get(username="ann")
erase_thread(Thread.objects.get().pk, by=ann)
finish_erasures()
print(Thread.objects.count(), Permission.objects.filter(codename__contains="notification").count())
"""


def test_threads_can_be_erased_after_the_notifications_were_removed(python: Command) -> None:
    told = python("-c", TELL)
    assert told.returncode == 0, told.stderr
    removed = vel(python, "features", "remove", "notifications", "--yes")
    assert removed.returncode == 0, removed.stderr
    disabled = {"VEL_DISABLED_FEATURES": "notifications"}
    erased = python("-c", ERASE, **disabled)
    assert erased.stdout.split("\n")[-2:] == ["0 0", ""], erased.stderr
    assert "notifications" not in vel(python, "--help", **disabled).stdout
    assert "tables of the feature" not in vel(python, "doctor", **disabled).stdout


def test_the_doctor_names_a_feature_that_was_only_disabled(python: Command) -> None:
    assert "tables of the feature" not in vel(python, "doctor").stdout
    found = vel(python, "doctor", **DISABLED).stdout
    assert "tables of the feature vel_credentials" in found


def test_runs_of_a_removed_kind_of_triggers_stay(python: Command) -> None:
    stored = python("-c", STORE_TRIGGERS)
    assert stored.returncode == 0, stored.stderr
    removed = vel(python, "features", "remove", "inbound_webhooks", "--yes")
    assert removed.returncode == 0, removed.stderr
    looked = python("-c", LOOK_FOR_TRIGGERS, VEL_DISABLED_FEATURES="inbound_webhooks")
    assert looked.stdout.split("\n")[-3:-1] == ["0 [None] 0 []", "0"], looked.stderr


def test_features_are_listed_with_their_rows(python: Command) -> None:
    assert python("-c", STORE).returncode == 0
    lines = vel(python, "features", "list").stdout.splitlines()
    rows = dict(line.split()[:2] for line in lines)
    assert rows["vel_credentials"] == "1"
    assert rows["vel_slack"] == rows["vel_databases"] == "0"


def test_an_unknown_feature_is_an_error_with_the_known_ones(python: Command) -> None:
    for failed in (
        vel(python, "features", "remove", "slak", "--yes"),
        vel(python, "features", "list", VEL_DISABLED_FEATURES="slak"),
    ):
        assert failed.returncode == 1
        assert "slak" in failed.stderr
        assert "google_workspace" in failed.stderr
