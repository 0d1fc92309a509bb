"""Access to a Vel site with worker processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import django

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import transaction  # noqa: E402
from protocol import serve  # noqa: E402
from vel_rows import make_site, write_notes  # noqa: E402

from agents.events.catalogue.tool_calls import ToolStarted  # noqa: E402
from agents.models import ApprovalRequest, Run, RunClock, RunEvent  # noqa: E402
from agents.services.approvals.decisions import DecisionRequest, decide_approval  # noqa: E402
from agents.services.runs.control import cancel_run  # noqa: E402
from agents.services.runs.start import RunRequest, create_run  # noqa: E402
from agents.states import ENDED_RUNS  # noqa: E402

POLL_SECONDS = 0.05


class VelSite:
    """Creates runs for the workers and reads their results."""

    def __init__(self) -> None:
        call_command("migrate", verbosity=0, skip_checks=True)
        self._owner = make_site()

    @transaction.atomic
    def start(self, agent: str, messages: list[str]) -> list[str]:
        """Create runs in one transaction, so that workers see all of them at the same time."""
        runs = [
            create_run(RunRequest(agent=agent, message=message), owner=self._owner).run
            for message in messages
        ]
        for run in runs:
            write_notes(run.thread_id)
        return [run.id for run in runs]

    def run_many(self, agent: str, messages: list[str], seconds: float) -> dict[str, Any]:
        """Run all at the same time. Measure from before their creation until the last one ends."""
        began = time.time()
        ids = self.start(agent, messages)
        created = time.time()
        self.wait_for_status(ids, sorted(ENDED_RUNS), seconds)
        runs = list(Run.objects.filter(pk__in=ids).select_related("clock"))
        failed = [run for run in runs if run.status != "completed"]
        if failed:
            raise RuntimeError(f"{len(failed)} runs failed, as: {failed[0].error_message}")
        last = max(run.ended_at.timestamp() for run in runs if run.ended_at)
        return {
            "wall_s": last - began,
            "creating_s": created - began,
            "calls": sum(run.clock.turn for run in runs),
        }

    def wait_for_status(self, ids: list[str], statuses: list[str], seconds: float) -> None:
        """Wait until all runs have one of the statuses. Raises `TimeoutError` after `seconds`."""
        reached = Run.objects.filter(pk__in=ids, status__in=statuses)
        _wait(
            lambda: reached.count() == len(ids),
            seconds,
            lambda: f"{reached.count()} of {len(ids)} runs are {' or '.join(statuses)}",
        )

    def wait_for_turns(self, ids: list[str], turns: int, seconds: float) -> None:
        """Wait until each run has made `turns` model calls."""
        reached = RunClock.objects.filter(run__in=ids, turn__gte=turns)
        _wait(
            lambda: reached.count() == len(ids),
            seconds,
            lambda: f"{reached.count()} of {len(ids)} runs have made {turns} model calls",
        )

    def decide(self, ids: list[str], interval: float) -> list[float]:
        """Approve the pending request of each run, one by one.

        Returns, for each run, the seconds from the commit of the decision to the commit of the
        `started` event of the approved call, by the clocks of the processes on this machine.
        """
        decided: dict[str, float] = {}
        for run_id in ids:
            request = ApprovalRequest.objects.get(run=run_id, status="pending")
            answer = DecisionRequest("approve", digest=request.digest)
            decide_approval(request.id, answer, by=self._owner)
            decided[run_id] = time.time()
            time.sleep(interval)
        started = RunEvent.objects.filter(run__in=ids, type=ToolStarted.type)
        _wait(
            lambda: started.count() == len(ids),
            60,
            lambda: f"{started.count()} of {len(ids)} approved calls have started",
        )
        moments = {row.run_id: row.created_at.timestamp() for row in started}
        return [max(0.0, moments[run_id] - decided[run_id]) for run_id in ids]

    def worker_pids(self, ids: list[str]) -> list[int]:
        """Return the processes that drive these runs now."""
        holders = RunClock.objects.filter(run__in=ids).exclude(lease_holder="")
        names = holders.values_list("lease_holder", flat=True)
        return sorted({int(name.split(":")[1]) for name in names})

    def cancel(self, ids: list[str], seconds: float) -> None:
        for run_id in ids:
            cancel_run(run_id, by="benchmark")
        self.wait_for_status(ids, sorted(ENDED_RUNS), seconds)


def _wait(condition: Callable[[], bool], seconds: float, state: Callable[[], str]) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {seconds:g} s {state()}")
        time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    site = VelSite()
    serve(
        {
            "start": site.start,
            "run_many": site.run_many,
            "wait_for_status": site.wait_for_status,
            "wait_for_turns": site.wait_for_turns,
            "decide": site.decide,
            "worker_pids": site.worker_pids,
            "cancel": site.cancel,
        }
    )
