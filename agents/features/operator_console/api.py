"""`GET /console`."""

from __future__ import annotations

from typing import Any, ClassVar

from django.urls import path
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.doors.rest.base import ApiView, person
from agents.doors.rest.operations import operation
from agents.doors.rest.serializers import StrictSerializer, read_query
from agents.features.operator_console.console import Console, console_of, may_view
from agents.features.operator_console.numbers import PERIODS, Numbers, Spender
from agents.features.operator_console.problems import CAUSES, OpenRun
from agents.models import Run, TokenScope
from agents.providers.prices import dollars
from agents.selectors.visible import VIEW_ALL
from agents.services.errors import NotAllowed


class ConsoleQuery(StrictSerializer):
    days = serializers.ChoiceField(choices=PERIODS, default=30)
    by = serializers.ChoiceField(choices=["agent", "model", "user", "tool"], default="agent")


class ConsoleNumbersShape(serializers.Serializer[object]):
    """Times are in seconds. `cost` is in US dollars; `cost_complete`: all prices are known."""

    model_calls = serializers.IntegerField()
    tokens = serializers.IntegerField()
    cost = serializers.CharField()
    cost_complete = serializers.BooleanField()
    runs = serializers.IntegerField()
    failed_runs = serializers.IntegerField()
    mean_queue_seconds = serializers.FloatField(allow_null=True)
    worker_seconds = serializers.FloatField()
    tool_calls = serializers.IntegerField()
    failed_tool_calls = serializers.IntegerField()
    tool_seconds = serializers.FloatField()
    decided_requests = serializers.IntegerField()
    mean_approval_seconds = serializers.FloatField(allow_null=True)


class ConsoleGroupShape(ConsoleNumbersShape):
    """`name` is empty for numbers that belong to no group."""

    name = serializers.CharField(allow_blank=True)


class ConsoleDayShape(ConsoleGroupShape):
    day = serializers.DateField()


class ConsoleRunShape(serializers.Serializer[object]):
    run = serializers.CharField()
    agent = serializers.CharField()
    user = serializers.CharField()


class ConsoleFailureShape(serializers.Serializer[object]):
    """Failed runs with the same error code, and the newest of them."""

    error_code = serializers.CharField(allow_blank=True)
    runs = serializers.IntegerField()
    newest = ConsoleRunShape()
    message = serializers.CharField(allow_blank=True)


class ConsoleOpenRunShape(ConsoleRunShape):
    """`since` is the time of its last event."""

    status = serializers.CharField()
    wait_reason = serializers.CharField(allow_blank=True)
    since = serializers.DateTimeField()


class ConsoleStuckRunShape(ConsoleOpenRunShape):
    cause = serializers.ChoiceField(choices=list(CAUSES))


class ConsoleRequestShape(ConsoleRunShape):
    id = serializers.CharField()
    tool = serializers.CharField()
    since = serializers.DateTimeField()


class ConsoleWorkShape(serializers.Serializer[object]):
    """The present state of the queue and the workers."""

    queued_runs = serializers.IntegerField()
    driven_runs = serializers.IntegerField()
    lost_runs = serializers.IntegerField()
    due_tasks = serializers.IntegerField()
    oldest_task_seconds = serializers.IntegerField(allow_null=True)
    workers = serializers.IntegerField()
    worker_capacity = serializers.IntegerField()


class ConsoleShape(serializers.Serializer[object]):
    """`days` has a row for each day and group with numbers, earliest first.

    The lists of users, agents, failures, runs and requests have at most 10 rows.
    """

    time_zone = serializers.CharField()
    total = ConsoleNumbersShape()
    groups = ConsoleGroupShape(many=True)
    days = ConsoleDayShape(many=True)
    top_users = ConsoleGroupShape(many=True)
    top_agents = ConsoleGroupShape(many=True)
    failures = ConsoleFailureShape(many=True)
    waiting_runs = ConsoleOpenRunShape(many=True)
    waiting_requests = ConsoleRequestShape(many=True)
    stuck_runs = ConsoleStuckRunShape(many=True)
    work = ConsoleWorkShape()


class OperatorConsole(ApiView):
    """The endpoint `GET /console?days=30&by=agent`. Requires the permission `view_all_runs`."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation(
        "get_console",
        "Read cost, runs, failures and waits of all users",
        query=ConsoleQuery,
        answer=ConsoleShape,
    )
    def get(self, request: Request) -> Response:
        user = person(request)
        if not may_view(user):
            raise NotAllowed(f"The console needs the permission {VIEW_ALL}.")
        query = read_query(ConsoleQuery, request)
        return Response(ConsoleShape(_shown(console_of(user, query["days"], query["by"]))).data)


def _shown(found: Console) -> dict[str, Any]:
    period, work = found.period, found.work
    return {
        "time_zone": str(found.zone),
        "total": _numbers(period.total),
        "groups": [{"name": name, **_numbers(numbers)} for name, numbers in period.groups],
        "days": [
            {"day": day, "name": name, **_numbers(numbers)}
            for (day, name), numbers in sorted(period.cells.items(), key=lambda item: item[0])
        ],
        "top_users": [_spender(each) for each in period.top_users],
        "top_agents": [_spender(each) for each in period.top_agents],
        "failures": [
            {
                "error_code": each.code,
                "runs": each.runs,
                "newest": _run(each.newest),
                "message": each.newest.error_message,
            }
            for each in found.failures
        ],
        "waiting_runs": [_open_run(each) for each in found.waiting_runs],
        "waiting_requests": [
            {"id": each.pk, "tool": each.tool, "since": each.created_at, **_run(each.run)}
            for each in found.waiting_requests
        ],
        "stuck_runs": [{**_open_run(each), "cause": each.cause} for each in found.stuck_runs],
        "work": {
            "queued_runs": work.queued,
            "driven_runs": work.driven,
            "lost_runs": work.lost,
            "due_tasks": work.tasks,
            "oldest_task_seconds": work.oldest_seconds,
            "workers": found.workers.processes,
            "worker_capacity": found.workers.capacity,
        },
    }


def _numbers(numbers: Numbers) -> dict[str, Any]:
    names = [name for name in ConsoleNumbersShape().get_fields() if not name.startswith("cost")]
    shown = {name: getattr(numbers, name) for name in names}
    return {**shown, "cost": dollars(numbers.microusd), "cost_complete": not numbers.unpriced}


def _spender(spender: Spender) -> dict[str, Any]:
    return {"name": spender.name, **_numbers(spender.numbers)}


def _run(run: Run) -> dict[str, Any]:
    return {
        "run": run.pk,
        "agent": run.agent_version.agent.slug,
        "user": run.owner.get_username(),
    }


def _open_run(each: OpenRun) -> dict[str, Any]:
    run = each.run
    return {
        **_run(run),
        "status": run.status,
        "wait_reason": run.wait_reason,
        "since": each.since,
    }


urlpatterns = [path("console", OperatorConsole.as_view(), name="console")]
