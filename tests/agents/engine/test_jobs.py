"""Periodic jobs of features, in a worker of this process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.engine.worker import Worker
from tests.support.runs import running_worker, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

CONFIG = """
from agents.kernel.features import FeatureConfig


class OutsideConfig(FeatureConfig):
    name = "feature_with_jobs"
    label = "feature_with_jobs"
"""
JOBS = """
from django.contrib.auth.models import User
from agents.kernel.features import Job


def fail():
    raise RuntimeError("This job always fails.")


def delete_one():
    user = User.objects.filter(username__startswith="old").first()
    return user is not None and bool(user.delete())


JOBS = [Job("failures", fail), Job("old users", delete_one), Job("rare", fail, every=3600.0)]
"""


@pytest.fixture(autouse=True)
def _feature(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    place = tmp_path / "feature_with_jobs"
    place.mkdir()
    (place / "__init__.py").touch()
    (place / "apps.py").write_text(CONFIG)
    (place / "jobs.py").write_text(JOBS)
    monkeypatch.syspath_prepend(str(tmp_path))
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "feature_with_jobs"]
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == "feature_with_jobs"]:
        del sys.modules[name]


def test_a_look_that_fails_is_repeated(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real, failed = Worker.look_after_membership, []

    async def fail_once(self: Worker) -> None:
        if not failed:
            failed.append(True)
            raise OSError("The disk went away.")
        await real(self)

    monkeypatch.setattr(Worker, "look_after_membership", fail_once)
    User.objects.create_user("old")
    with running_worker():
        wait_until(lambda: not User.objects.exists(), "the old user is gone")
    assert "the look for runs failed" in caplog.text


@pytest.mark.slow
def test_a_job_works_until_nothing_is_left_although_another_fails(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for number in range(3):
        User.objects.create_user(f"old{number}")
    User.objects.create_user("ann")
    with running_worker():
        wait_until(lambda: User.objects.count() == 1, "the old users are gone")
        wait_until(
            lambda: "job for failures failed, next try in 4 s" in caplog.text, "a repetition"
        )
    assert User.objects.get().username == "ann"
    assert "This job always fails." in caplog.text
    assert caplog.text.count("periodic job for failures failed, next try in 2 s") == 1
    assert caplog.text.count("periodic job for rare failed, next try in 3600 s") == 1
