"""Endpoint that resumes an ended run."""

from __future__ import annotations

from typing import ClassVar

from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.runs import show_run
from agents.api.serializers.resume import ResumeBody
from agents.api.serializers.runs import RunShape
from agents.api.transcript import run_of
from agents.doors.rest.base import ApiView, person
from agents.doors.rest.idempotency import idempotent
from agents.doors.rest.operations import IDEMPOTENCY_KEY, LOCATION, operation
from agents.doors.rest.serializers import read_body
from agents.models import TokenScope
from agents.services.runs.resume_ended import resume_as_new_run


class ResumeRun(ApiView):
    """The endpoint `POST /runs/{id}/resume`: creates a new run in the same thread."""

    scopes: ClassVar = {"POST": TokenScope.RUN}

    @operation(
        "resume_run",
        "Go on with a run that failed, was cancelled or came to a limit",
        body=ResumeBody,
        answers={201: RunShape},
        errors=(409,),
        headers=(IDEMPOTENCY_KEY, LOCATION),
    )
    @idempotent
    def post(self, request: Request, run_id: str) -> Response:
        user = person(request)
        body = read_body(ResumeBody, request)
        run = run_of(user, run_id)
        made = resume_as_new_run(run.pk, by=user, message=body.get("message") or "")
        return Response(
            show_run(user, made.pk), status=201, headers={"Location": reverse_run(made.pk)}
        )


def reverse_run(run_id: str) -> str:
    return reverse("api:run", kwargs={"run_id": run_id})
