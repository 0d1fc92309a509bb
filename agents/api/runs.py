"""Starting, listing, reading and cancelling runs."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.auth.base_user import AbstractBaseUser
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.base import ApiView, person
from agents.api.pages import page_of
from agents.api.serializers.runs import (
    CancelBody,
    RunBody,
    RunListQuery,
    RunShape,
    with_run_columns,
)
from agents.api.serializers.strict import read_body, read_query
from agents.models import Run, TokenScope
from agents.selectors.visible import runs_for, watchable_runs_for
from agents.services.errors import InvalidRequest, NotFound
from agents.services.run_control import cancel_for
from agents.services.runs import RunRequest, create_run


class Runs(ApiView):
    """`GET /runs`, `POST /runs`"""

    scopes: ClassVar = {"GET": TokenScope.READ, "POST": TokenScope.RUN}

    def get(self, request: Request) -> Response:
        query = read_query(RunListQuery, request)
        user = person(request)
        # Subagents' runs are listed below their parent.
        if "parent" in query:
            runs = runs_for(user).filter(parent=query["parent"])
        else:
            runs = runs_for(user).filter(owner=user.pk, parent=None)
        if "status" in query:
            runs = runs.filter(status=query["status"])
        if "agent" in query:
            runs = runs.filter(agent_version__agent__slug=query["agent"])
        if "thread" in query:
            runs = runs.filter(thread=query["thread"])
        return page_of(
            with_run_columns(runs),
            RunShape().to_representation,
            by="id",
            descending=True,
            cursor=query.get("cursor"),
            limit=query["limit"],
        )

    def post(self, request: Request) -> Response:
        body = read_body(RunBody, request)
        user = person(request)
        made = create_run(RunRequest(**body), owner=user, idempotency_key=_idempotency_key(request))
        return Response(
            show_run(user, made.run.id),
            status=201 if made.created else 200,
            headers={"Location": f"{request.path}/{made.run.id}"},
        )


class OneRun(ApiView):
    """`GET /runs/{id}`"""

    scopes: ClassVar = {"GET": TokenScope.READ}

    def get(self, request: Request, run_id: str) -> Response:
        return Response(show_run(person(request), run_id))


class CancelRun(ApiView):
    """`POST /runs/{id}/cancel`"""

    scopes: ClassVar = {"POST": TokenScope.RUN}

    def post(self, request: Request, run_id: str) -> Response:
        body = read_body(CancelBody, request)
        user = person(request)
        run = watchable_runs_for(user).filter(pk=run_id).first()
        if run is None:
            raise run_not_found(run_id)
        cancel_for(user, run, reason=body["reason"])
        return Response(show_run(user, run.id))


def show_run(user: AbstractBaseUser, run_id: str) -> dict[str, object]:
    """A run as `user` may see it."""
    run: Run | None = with_run_columns(runs_for(user)).filter(pk=run_id).first()
    if run is None:
        raise run_not_found(run_id)
    return RunShape(run).data


def run_not_found(run_id: str) -> NotFound:
    return NotFound(f"There is no run {run_id!r} that you may see.")


def _idempotency_key(request: Request) -> str | None:
    key = request.headers.get("Idempotency-Key")
    if key is not None and not (key.isascii() and key.isprintable()):
        raise InvalidRequest("The idempotency key must be printable ASCII, for example a UUID.")
    return key
