"""`POST /runs/{id}/fork`."""

from __future__ import annotations

from typing import ClassVar

from django.urls import path, reverse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.runs import show_run
from agents.api.serializers.runs import RunShape
from agents.api.serializers.threads import ThreadShape
from agents.api.threads import show_thread
from agents.api.transcript import run_of
from agents.doors.rest.base import ApiView, person
from agents.doors.rest.idempotency import answer_once, answered_before
from agents.doors.rest.operations import IDEMPOTENCY_KEY, LOCATION, operation
from agents.doors.rest.serializers import StrictSerializer, Text, read_body
from agents.features.forks.actions import Fork, ForkRequest, complete_fork, prepared_fork
from agents.features.forks.files import CHOICES, THEN
from agents.models import TokenScope

PINNED, CURRENT = "pinned", "current"


class ForkBody(StrictSerializer):
    """`agents.features.forks.actions.ForkRequest`"""

    step = serializers.IntegerField(
        min_value=0,
        max_value=2**31 - 1,
        required=False,
        allow_null=True,
        help_text="The last turn that the new thread copies; 0 for the message alone.",
    )
    message = Text(
        required=False, allow_null=True, help_text="A message that starts a run in the new thread."
    )
    thread_key = Text(max_length=200, required=False, allow_null=True)
    version = serializers.ChoiceField(
        choices=[PINNED, CURRENT],
        default=PINNED,
        help_text="The version of the agent for the new run: that of the "
        "old run, or the current one.",
    )
    files = serializers.ChoiceField(
        choices=CHOICES,
        default=THEN,
        help_text="As they were after the step, as they are now, or none.",
    )


class LeftOutShape(serializers.Serializer[object]):
    path = serializers.CharField()
    reason = serializers.CharField()


class CopiedFilesShape(serializers.Serializer[object]):
    written = serializers.IntegerField()
    left_out = LeftOutShape(many=True)


class ForkShape(serializers.Serializer[object]):
    """`run` is null without a message."""

    thread = ThreadShape()
    run = RunShape(allow_null=True)
    files = CopiedFilesShape()


class ForkRun(ApiView):
    """`POST /runs/{id}/fork`: a new thread that starts with the conversation of the run."""

    scopes: ClassVar = {"POST": TokenScope.RUN}

    @operation(
        "fork_run",
        "Start a new thread from a step of a run",
        body=ForkBody,
        answers={201: ForkShape},
        errors=(409,),
        headers=(IDEMPOTENCY_KEY, LOCATION),
    )
    def post(self, request: Request, run_id: str) -> Response:
        user = person(request)
        body = read_body(ForkBody, request)
        run = run_of(user, run_id)
        asked = ForkRequest(
            step=body.get("step"),
            message=body.get("message"),
            thread_key=body.get("thread_key"),
            present_version=body["version"] == CURRENT,
            files=body["files"],
        )
        if (known := answered_before(request)) is not None:
            return known
        # Files are copied before the transaction that stores the key.
        with prepared_fork(run, asked, by=user) as fork:
            return answer_once(request, lambda: self._complete(request, fork))

    def _complete(self, request: Request, fork: Fork) -> Response:
        user = person(request)
        complete_fork(fork)
        files = fork.files
        shown = {
            "thread": show_thread(user, fork.thread.pk),
            "run": show_run(user, fork.run.pk) if fork.run is not None else None,
            "files": {
                "written": files.written,
                "left_out": [{"path": path, "reason": reason} for path, reason in files.left_out],
            },
        }
        where = reverse("api:thread", kwargs={"thread_id": fork.thread.pk})
        return Response(shown, status=201, headers={"Location": where})


urlpatterns = [
    path("runs/<opaque_id:run_id>/fork", ForkRun.as_view(), name="run-fork"),
]
