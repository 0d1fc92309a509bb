"""Endpoints for the parts of a run: to-dos, artifacts and subagents."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, ClassVar
from urllib.parse import urlencode

from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.serializers.run_parts import (
    ArtifactsShape,
    SubagentShape,
    SubagentsShape,
    TodosShape,
)
from agents.api.serializers.runs import with_run_columns
from agents.api.transcript import run_of
from agents.doors.rest.base import ApiView, person
from agents.doors.rest.operations import operation
from agents.doors.rest.serializers import StrictSerializer, read_query
from agents.models import Run, TokenScope
from agents.selectors.family import MAX_SHOWN, descendants_of
from agents.selectors.todos import todos_after
from agents.selectors.visible import runs_for
from agents.services.errors import NotAllowed
from agents.services.files.artifacts import artifacts_of


class Todos(ApiView):
    """The endpoint `GET /runs/{id}/todos`: the thread's list at the end of the run, or now."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation("list_todos", "Read a run's to-do list", errors=(400,), answer=TodosShape)
    def get(self, request: Request, run_id: str) -> Response:
        read_query(StrictSerializer, request)
        return Response({"results": todos_after(run_of(person(request), run_id))})


class Artifacts(ApiView):
    """The endpoint `GET /runs/{id}/artifacts`, for the run's owner only."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation(
        "list_artifacts",
        "List the files that a run made or changed",
        errors=(400,),
        answer=ArtifactsShape,
    )
    def get(self, request: Request, run_id: str) -> Response:
        read_query(StrictSerializer, request)
        user = person(request)
        run = run_of(user, run_id)
        if run.owner_id != user.pk:
            raise NotAllowed("The files of a run are its owner's alone.")
        found = artifacts_of(run)
        shown = [
            {
                "path": file.path,
                "what": file.what,
                "size": file.size,
                "url": _url(run, file.path) if file.size is not None else None,
            }
            for file in found.files
        ]
        return Response({"results": shown, "truncated": found.is_cut})


def _url(run: Run, path: str) -> str:
    # A subagent writes to the directories of its own thread.
    place = reverse("api:file-content", kwargs={"thread_id": run.thread_id})
    return f"{place}?{urlencode({'path': path})}"


class Subagents(ApiView):
    """The endpoint `GET /runs/{id}/subagents`: the descendants as a tree."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation(
        "list_subagents",
        "Read the tree of a run's subagents",
        errors=(400,),
        answer=SubagentsShape,
    )
    def get(self, request: Request, run_id: str) -> Response:
        read_query(StrictSerializer, request)
        user = person(request)
        run = run_of(user, run_id)
        members = descendants_of(run.pk, with_run_columns(runs_for(user)), limit=MAX_SHOWN + 1)
        below: dict[str | None, list[dict[str, Any]]] = defaultdict(list)
        for member in members[:MAX_SHOWN]:
            shown = {**SubagentShape(member).data, "subagents": below[member.pk]}
            below[member.parent_id].append(shown)
        return Response({"results": below[run.pk], "truncated": len(members) > MAX_SHOWN})
