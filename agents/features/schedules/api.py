"""A person's own schedules."""

from __future__ import annotations

from typing import ClassVar

from django.urls import path
from rest_framework.request import Request
from rest_framework.response import Response

from agents.doors.rest.base import ApiView, person, require_scope
from agents.doors.rest.idempotency import idempotent
from agents.doors.rest.managed.coverage import RestObject
from agents.doors.rest.operations import IDEMPOTENCY_KEY, LOCATION, Page, operation
from agents.doors.rest.serializers import PageQuery, read_body
from agents.doors.rest.triggers import TriggerListQuery, list_page, own, records_page, with_body
from agents.features.schedules.actions import delete_schedule, enable_schedule, save_schedule
from agents.features.schedules.firing import fire_now
from agents.features.schedules.models import Schedule
from agents.features.schedules.queries import schedules_for
from agents.features.schedules.serializers import (
    FiringShape,
    NewScheduleBody,
    ScheduleBody,
    ScheduleShape,
    StartedRunShape,
)
from agents.models import TokenScope


class Schedules(ApiView):
    """`GET /schedules`: newest first. `POST /schedules`"""

    scopes: ClassVar = {"GET": TokenScope.READ, "POST": TokenScope.MANAGE}

    @operation(
        "list_schedules",
        "List schedules",
        query=TriggerListQuery,
        answer=Page(ScheduleShape),
    )
    def get(self, request: Request) -> Response:
        rows = schedules_for(person(request))
        return list_page(request, rows, ScheduleShape().to_representation)

    @operation(
        "create_schedule",
        "Create a schedule",
        body=NewScheduleBody,
        answers={201: ScheduleShape},
        errors=(404, 409),
        headers=(IDEMPOTENCY_KEY, LOCATION),
    )
    @idempotent
    def post(self, request: Request) -> Response:
        user = person(request)
        _must_run(request)
        schedule = with_body(Schedule(owner_id=user.pk), read_body(NewScheduleBody, request), user)
        save_schedule(schedule, by=user)
        where = f"{request.path}/{schedule.pk}"
        return Response(ScheduleShape(schedule).data, status=201, headers={"Location": where})


class OneSchedule(ApiView):
    """`GET`, `PATCH` and `DELETE /schedules/{id}`"""

    scopes: ClassVar = {
        "GET": TokenScope.READ,
        "PATCH": TokenScope.MANAGE,
        "DELETE": TokenScope.MANAGE,
    }

    @operation("get_schedule", "Read a schedule", answer=ScheduleShape)
    def get(self, request: Request, schedule_id: str) -> Response:
        return Response(ScheduleShape(_own(request, schedule_id)).data)

    @operation(
        "change_schedule",
        "Change a schedule",
        body=ScheduleBody,
        answer=ScheduleShape,
        description="`enabled` false pauses it. Times during the pause are skipped.",
    )
    def patch(self, request: Request, schedule_id: str) -> Response:
        user = person(request)
        schedule = _own(request, schedule_id)
        body = read_body(ScheduleBody, request)
        if body != {"enabled": False}:
            _must_run(request)
        if set(body) == {"enabled"}:  # also if its agent is no longer available to the person
            return Response(
                ScheduleShape(enable_schedule(schedule.pk, body["enabled"], by=user)).data
            )
        return Response(ScheduleShape(save_schedule(with_body(schedule, body, user), by=user)).data)

    @operation("delete_schedule", "Delete a schedule", answers={204: None})
    def delete(self, request: Request, schedule_id: str) -> Response:
        delete_schedule(_own(request, schedule_id).pk, by=person(request))
        return Response(status=204)


class RunSchedule(ApiView):
    """`POST /schedules/{id}/run`: once, now."""

    scopes: ClassVar = {"POST": TokenScope.RUN}

    @operation(
        "run_schedule",
        "Start a schedule's run now",
        answers={201: StartedRunShape},
        errors=(400, 409),
    )
    def post(self, request: Request, schedule_id: str) -> Response:
        run = fire_now(_own(request, schedule_id).pk, by=person(request))
        return Response({"run": run.pk}, status=201)


class Firings(ApiView):
    """`GET /schedules/{id}/firings`: newest first; the last 200 are kept."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation(
        "list_firings",
        "List the times of a schedule and their results",
        query=PageQuery,
        answer=Page(FiringShape),
    )
    def get(self, request: Request, schedule_id: str) -> Response:
        rows = _own(request, schedule_id).firings.all()
        return records_page(request, rows, FiringShape().to_representation)


def _must_run(request: Request) -> None:
    """Require the scope to start runs, since scheduled runs start without the token."""
    require_scope(request, TokenScope.RUN, beside=TokenScope.MANAGE)


def _own(request: Request, schedule_id: str) -> Schedule:
    return own(request, schedules_for(person(request)), schedule_id, "schedule")


_OWN = "its owner; others: staff with `vel_schedules.view_schedule`"
_STOP = "its owner; only to pause or delete: `vel_schedules.change_schedule`"

OBJECTS = [
    RestObject(
        model=Schedule,
        path="schedules",
        list=("list_schedules", _OWN),
        read=("get_schedule", _OWN),
        create=("create_schedule", "everybody, for an agent that they may use"),
        change=("change_schedule", _STOP),
        delete=("delete_schedule", _STOP),
        further={"run_schedule": "its owner"},
        actions={
            "run_now": "run_schedule",
            "pause": "change_schedule",
            "go_on": "change_schedule",
        },
    )
]

urlpatterns = [
    path("schedules", Schedules.as_view(), name="schedules"),
    path("schedules/<opaque_id:schedule_id>", OneSchedule.as_view(), name="schedule"),
    path("schedules/<opaque_id:schedule_id>/run", RunSchedule.as_view(), name="schedule-run"),
    path("schedules/<opaque_id:schedule_id>/firings", Firings.as_view(), name="firings"),
]
