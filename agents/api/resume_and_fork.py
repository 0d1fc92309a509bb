"""Going on from an ended run, and beginning another thread from any step of one."""

from __future__ import annotations

from typing import ClassVar

from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.base import ApiView, person
from agents.api.idempotency import answer_once, answered_before, idempotent
from agents.api.operations import IDEMPOTENCY_KEY, LOCATION, operation
from agents.api.runs import show_run
from agents.api.serializers.resume_and_fork import CURRENT, ForkBody, ForkShape, ResumeBody
from agents.api.serializers.runs import RunShape
from agents.api.serializers.strict import read_body
from agents.api.threads import show_thread
from agents.api.transcript import run_of
from agents.models import TokenScope
from agents.services.forking import Fork, ForkRequest, complete_fork, prepared_fork
from agents.services.resume_ended_runs import resume_as_new_run


class ResumeRun(ApiView):
    """`POST /runs/{id}/resume`: a new run of the same thread."""

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


class ForkRun(ApiView):
    """`POST /runs/{id}/fork`: a new thread that begins with the conversation of the run."""

    scopes: ClassVar = {"POST": TokenScope.RUN}

    @operation(
        "fork_run",
        "Begin a new thread from a step of a run",
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
        # Files are copied before the transaction that the key is written in.
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


def reverse_run(run_id: str) -> str:
    return reverse("api:run", kwargs={"run_id": run_id})
