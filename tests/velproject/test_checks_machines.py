"""Settings of several hosts that would lose or mix up files are refused."""

from __future__ import annotations

from typing import Any

import pytest

from velproject import env
from velproject.checks.machines import check_machines

POSTGRES = {"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "x"}}
S3 = env.storages("s3://bucket")["vel"]


def found(settings: Any, *, storage: Any = S3, broker: bool = True, **vel: Any) -> set:
    settings.VEL = {**settings.VEL, **vel}
    settings.STORAGES = {"vel": storage} if storage else {}
    broker_class = {"broker_class": "agents.queues.MachineQueue"} if broker else {}
    settings.Q_CLUSTER = {**settings.Q_CLUSTER, **broker_class}
    return {message.id for message in check_machines(None)}


@pytest.fixture
def on_postgres(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Any:
    engine = "django.db.backends.postgresql"
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", engine)
    return settings


def test_one_machine_needs_nothing(settings: Any) -> None:
    assert found(settings, storage=None, broker=False) == set()
    assert found(settings, SHARED_WORKSPACES=True) == {"vel.E030"}


def test_a_good_host_has_no_finding(on_postgres: Any) -> None:
    assert found(on_postgres, HOST="vel-1") == set()
    assert found(on_postgres, HOST="vel-1", HOST_DEAD_AFTER=60) == set()
    assert found(on_postgres, HOST="vel-1", storage=None, SHARED_WORKSPACES=True) == set()


@pytest.mark.parametrize(
    ("more", "finding"),
    [
        ({"storage": None}, "vel.E034"),
        ({"storage": env.storages("file:///mnt/vel")["vel"]}, "vel.W030"),
        ({"broker": False}, "vel.E032"),
        ({"HOST_DEAD_AFTER": 59}, "vel.E033"),
        ({"SNAPSHOT_TURNS": 0}, "vel.E035"),
        ({"HOST": "0123456789ab"}, "vel.W031"),
    ],
)
def test_missing_settings_are_reported(
    on_postgres: Any, more: dict[str, Any], finding: str
) -> None:
    assert found(on_postgres, **{"HOST": "vel-1", **more}) == {finding}


def test_sqlite_is_one_machines(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    engine = "django.db.backends.sqlite3"
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", engine)
    assert found(settings, HOST="vel-1") == {"vel.E031"}
