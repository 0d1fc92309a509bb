"""Harmful tests, which `tests/test_isolation.py` runs in a separate pytest."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection
from pytest_timeout import Settings

from agents.models import Agent
from tests.support import process_guard

DAEMON = ["setsid", "--fork", "sleep", "1000"]
"""A daemon: a process in a separate session whose parent has ended."""

# All use the database in the same way, so that pytest-django does not change their order.


def _change_everything() -> None:
    User.objects.create_user("ada")
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE {Agent._meta.db_table}")
    os.chdir("/")
    os.environ["VEL_TEST_LEFT"] = "1"
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _start_processes() -> None:
    subprocess.run(DAEMON, check=True)
    subprocess.Popen(["sleep", "1000"], env={})
    if os.fork() == 0:
        signal.pause()


def _assert_sound() -> None:
    assert not User.objects.exists()
    assert not Agent.objects.exists()
    assert os.getcwd() != "/"
    assert "VEL_TEST_LEFT" not in os.environ
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.django_db(transaction=True)
def test_hangs(request: pytest.FixtureRequest) -> None:
    _change_everything()
    _start_processes()
    # A short limit for the whole test could end it earlier than here.
    limit = Settings(0.1, "signal", False, False)
    request.config.hook.pytest_timeout_set_timer(item=request.node, settings=limit)
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    threading.Event().wait()


@pytest.mark.django_db(transaction=True)
def test_after_a_hang() -> None:
    _assert_sound()


@pytest.mark.django_db(transaction=True)
def test_is_killed() -> None:
    _change_everything()
    _start_processes()
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.django_db(transaction=True)
def test_after_a_kill() -> None:
    _assert_sound()


@pytest.mark.django_db(transaction=True)
def test_changes_everything_and_fails() -> None:
    _change_everything()
    raise AssertionError("on purpose")


@pytest.mark.django_db(transaction=True)
def test_after_a_failure() -> None:
    _assert_sound()


def test_leaves_a_process() -> None:
    subprocess.run(DAEMON, check=True)


def test_leaves_a_process_without_the_token() -> None:
    subprocess.Popen(["sleep", "1000"], env={})


def test_after_what_was_left() -> None:
    assert not process_guard.family(process_guard.token(), process_guard.reported())


def test_waits_to_be_killed(tmp_path: Path) -> None:
    _start_processes()
    tempfile.mkdtemp(dir=os.environ["VEL_TEST_ROOT"])
    Path(os.environ["VEL_TEST_READY"]).touch()
    threading.Event().wait()
