"""`POST /runs/{id}/send-now`."""

from __future__ import annotations

from typing import ClassVar

from django.urls import path
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.runs import run_not_found
from agents.doors.rest.base import ApiView, person
from agents.doors.rest.operations import operation
from agents.doors.rest.serializers import StrictSerializer, read_body
from agents.features.steering.actions import send_now
from agents.models import TokenScope
from agents.selectors.visible import runs_for


class SendNowShape(serializers.Serializer[object]):
    """`agents.features.steering.actions.send_now`"""

    joins = serializers.CharField(
        allow_null=True,
        help_text="The run in progress that reads the message before its next model call. Null: "
        "that run ends, and the message starts its own run.",
    )


class SendNow(ApiView):
    """The endpoint `POST /runs/{id}/send-now`, for the owner of the waiting run."""

    scopes: ClassVar = {"POST": TokenScope.RUN}

    @operation(
        "send_now",
        "Send a waiting message to the run in progress",
        body=StrictSerializer,
        answer=SendNowShape,
        errors=(409,),
    )
    def post(self, request: Request, run_id: str) -> Response:
        read_body(StrictSerializer, request)
        user = person(request)
        runs = runs_for(user).filter(owner=user.pk, parent=None)
        waiting = runs.filter(pk=run_id).first()
        if waiting is None:
            raise run_not_found(run_id)
        run = send_now(waiting, by=user)
        return Response({"joins": run.pk if run is not None else None})


urlpatterns = [path("runs/<opaque_id:run_id>/send-now", SendNow.as_view(), name="run-send-now")]
