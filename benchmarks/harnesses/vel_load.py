"""Vel's side of the load generator: users, tokens, a full queue and the results."""

from __future__ import annotations

import statistics
from typing import Any

import django

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402
from django.contrib.auth.models import Permission, User  # noqa: E402
from django.db import transaction  # noqa: E402
from django.db.models import Count  # noqa: E402
from protocol import serve  # noqa: E402
from vel_rows import database_bytes  # noqa: E402
from vel_site import VelSite  # noqa: E402

from agents.events.catalogue.tool_calls import ToolStarted  # noqa: E402
from agents.models import ApprovalRequest, Message, Run, RunEvent  # noqa: E402
from agents.services.runs.start import RunRequest, create_run  # noqa: E402
from agents.services.tokens import create_token  # noqa: E402

PER_TRANSACTION = 50


class LoadedSite(VelSite):
    """A site with runs and several users."""

    def people(self, readers: int, approvers: int) -> dict[str, list[str]]:
        """Create users. Return the tokens of readers, who may read all runs, and of approvers."""
        return {
            "readers": [_token(f"reader-{n}", "view_all_runs", "read") for n in range(readers)],
            "approvers": [
                _token(f"approver-{n}", "approve_toolcall", "read", "approve")
                for n in range(approvers)
            ],
        }

    def queue(self, runs: list[tuple[str, str]]) -> list[str]:
        """Queue runs, given as (agent, message), in transactions of fifty, and return their ids."""
        ids = []
        for start in range(0, len(runs), PER_TRANSACTION):
            with transaction.atomic():
                for agent, message in runs[start : start + PER_TRANSACTION]:
                    request = RunRequest(agent=agent, message=message)
                    ids.append(create_run(request, owner=self._owner).run.id)
        return ids

    def open(self, ids: list[str]) -> dict[str, int]:
        """Return the number of runs that have not ended, by status.

        Counts all runs since the first of `ids`, because ids start with the time.
        """
        rows = Run.objects.filter(pk__gte=min(ids), ended_at=None).values_list("status")
        return dict(rows.annotate(runs=Count("id")).order_by())

    def size(self) -> int:
        return database_bytes()

    def figures(self, ids: list[str]) -> dict[str, Any]:
        """Return the seconds of runs in the queue, and from each decision to its call."""
        runs = list(Run.objects.filter(pk__in=ids))
        waits = [
            (run.started_at - run.created_at).total_seconds() for run in runs if run.started_at
        ]
        began = min(run.created_at for run in runs)
        last = max(run.ended_at for run in runs if run.ended_at)
        decided = dict(
            ApprovalRequest.objects.filter(run__in=ids, status="decided").values_list(
                "run_id", "decided_at"
            )
        )
        started = RunEvent.objects.filter(run__in=list(decided), type=ToolStarted.type)
        pickups = [
            max(0.0, (event.created_at - decided[event.run_id]).total_seconds())
            for event in started
        ]
        return {
            "wall_s": (last - began).total_seconds(),
            "calls": Message.objects.filter(run__in=ids, role="assistant").count(),
            "failed": sum(run.status != "completed" for run in runs),
            "events": RunEvent.objects.filter(run__in=ids).count(),
            "queue_p50_s": statistics.median(waits),
            "queue_p95_s": _p95(waits),
            "pickups": len(pickups),
            "pickup_p50_s": statistics.median(pickups) if pickups else 0.0,
            "pickup_p95_s": _p95(pickups),
        }


def _p95(seconds: list[float]) -> float:
    if len(seconds) < 2:
        return max(seconds, default=0.0)
    return statistics.quantiles(seconds, n=20, method="inclusive")[-1]


def _token(name: str, permission: str, *scopes: str) -> str:
    user: User = get_user_model().objects.create_user(name)
    user.user_permissions.add(Permission.objects.get(codename=permission))
    return create_token(user, scopes=list(scopes))[1]


if __name__ == "__main__":
    site = LoadedSite()
    serve(
        {
            "people": site.people,
            "queue": site.queue,
            "open": site.open,
            "size": site.size,
            "figures": site.figures,
            "run_many": site.run_many,
        }
    )
