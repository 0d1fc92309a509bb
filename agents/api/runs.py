"""Endpoints that start, list, read and cancel runs."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.serializers.runs import (
    RUN_ORDER,
    CancelBody,
    RunBody,
    RunForm,
    RunListQuery,
    RunShape,
    run_body_of,
    with_run_columns,
)
from agents.doors.rest.base import ApiView, person
from agents.doors.rest.forms import UploadsView, files_of, is_form
from agents.doors.rest.idempotency import idempotent
from agents.doors.rest.list_queries import created_between
from agents.doors.rest.operations import IDEMPOTENCY_KEY, LOCATION, Page, operation
from agents.doors.rest.pagination import ordered_page
from agents.doors.rest.serializers import read_body, read_query
from agents.doors.rest.wire import StrictJSONParser
from agents.kernel.triggers import trigger_kinds
from agents.models import ApiToken, Run, TokenScope
from agents.selectors.starters import of_starter
from agents.selectors.visible import of_agent, runs_for, watchable_runs_for
from agents.services.errors import Conflict, NotFound
from agents.services.files.uploads import create_run_with
from agents.services.runs.control import cancel_for
from agents.services.runs.start import RunRequest
from sandbox.errors import SandboxError


def _answer_size(run: Any) -> int:
    """Return the size of the final answer. `run` is a row of `with_run_columns`."""
    return len(run.final_content or "")


class Runs(UploadsView):
    """The endpoints `GET /runs` and `POST /runs` (JSON, or a form with files)."""

    scopes: ClassVar = {"GET": TokenScope.READ, "POST": TokenScope.RUN}
    parser_classes = (StrictJSONParser, MultiPartParser)  # type: ignore[assignment]

    @operation("list_runs", "List your runs", query=RunListQuery, answer=Page(RunShape))
    def get(self, request: Request) -> Response:
        query = read_query(RunListQuery, request)
        user = person(request)
        # Subagents' runs are listed with `parent`.
        if "parent" in query:
            runs = runs_for(user).filter(parent=query["parent"])
        else:
            runs = runs_for(user).filter(owner=user.pk, parent=None)
        runs = runs.filter(**created_between(query))
        if "thread" in query:
            runs = runs.filter(thread=query["thread"])
        for kind in trigger_kinds():
            if kind.source in query:
                runs = runs.filter(trigger=query[kind.source])
        # The filters above have an index.
        among = runs if {"status", "agent", "started_by"} & set(query) else None
        if "status" in query:
            runs = runs.filter(status=query["status"])
        if "agent" in query:
            runs = runs.filter(of_agent("agent_version__agent", query["agent"]))
        if "started_by" in query:
            runs = runs.filter(of_starter(query["started_by"]))
        show = RunShape().to_representation
        return ordered_page(
            with_run_columns(runs),
            show,
            query,
            RUN_ORDER,
            among,
            weight=_answer_size,
        )

    @operation(
        "create_run",
        "Start a run",
        body=RunBody,
        form=RunForm,
        answers={201: RunShape},
        errors=(404, 409),
        headers=(IDEMPOTENCY_KEY, LOCATION),
    )
    @idempotent
    def post(self, request: Request) -> Response:
        user = person(request)
        files = []
        if is_form(request):
            body = run_body_of(request)
            files = files_of(request, needed=False, beside=body)
        else:
            body = read_body(RunBody, request)
        try:
            asked = RunRequest(**body, traceparent=request.headers.get("traceparent", ""))
            run = create_run_with(asked, files, owner=user).run
        except SandboxError as error:
            raise Conflict(str(error), code="upload_failed") from error
        return Response(
            show_run(user, run.id), status=201, headers={"Location": f"{request.path}/{run.id}"}
        )


class OneRun(ApiView):
    """The endpoint `GET /runs/{id}`."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation("get_run", "Read a run", answer=RunShape)
    def get(self, request: Request, run_id: str) -> Response:
        return Response(show_run(person(request), run_id))


class CancelRun(ApiView):
    """The endpoint `POST /runs/{id}/cancel`."""

    scopes: ClassVar = {"POST": TokenScope.RUN}

    @operation("cancel_run", "Cancel a run", body=CancelBody, answer=RunShape, errors=(409,))
    def post(self, request: Request, run_id: str) -> Response:
        body = read_body(CancelBody, request)
        user = person(request)
        run = watchable_runs_for(user).filter(pk=run_id).first()
        if run is None:
            raise run_not_found(run_id)
        cancel_for(user, run, reason=body["reason"])
        shown = show_run(user, run.id)
        if isinstance(request.auth, ApiToken) and TokenScope.READ not in request.auth.scopes:
            # The run may have an answer already, which requires a token that can read.
            shown |= {"output": None, "structured_output": None}
        return Response(shown)


def show_run(user: AbstractBaseUser, run_id: str) -> dict[str, object]:
    """Return a run as visible to `user`. Raises `NotFound`."""
    run: Run | None = with_run_columns(runs_for(user)).filter(pk=run_id).first()
    if run is None:
        raise run_not_found(run_id)
    return RunShape(run).data


def run_not_found(run_id: str) -> NotFound:
    return NotFound(f"There is no run {run_id!r} that you may see.")
