"""A Django app that kills one worker while it hands over a result."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from django.apps import AppConfig


class Dying(AppConfig):
    name = "tests.chaos"
    label = "dying"

    def ready(self) -> None:
        from django_q.signals import post_execute_in_worker  # needs settings

        # The signal is sent while the worker holds the lock that it shares with its cluster's
        # guard.
        post_execute_in_worker.connect(die_once)


def die_once(**_: object) -> None:
    """Kill this process if it is the first that calls this function."""
    try:
        Path(os.environ["VEL_TEST_DIES_WITH_RESULT"]).touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
