"""Endpoints for toolboxes, the Python environments of agents on this host."""

from __future__ import annotations

import logging
from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.serializers.toolboxes import (
    NewToolboxBody,
    ToolboxDetailShape,
    ToolboxesShape,
)
from agents.doors.rest.base import ApiView, person
from agents.doors.rest.idempotency import idempotent
from agents.doors.rest.operations import IDEMPOTENCY_KEY, operation
from agents.doors.rest.serializers import StrictSerializer, read_body, read_query
from agents.models import TokenScope
from agents.selectors.visible import agents_for
from agents.services.errors import NotAllowed, NotFound
from agents.services.toolbox_builds import (
    CONFIGURE,
    build_state,
    remove_toolbox,
    start_build,
)
from agents.settings import DataSettings, MachineSettings
from sandbox.errors import SandboxError
from sandbox.toolboxes.find import find_toolbox, toolbox_names
from sandbox.toolboxes.toolbox import mismatch

logger = logging.getLogger(__name__)


class Toolboxes(ApiView):
    """The endpoints `GET /toolboxes`, those of agents that you can use, and `POST /toolboxes`.

    People who can configure the sandbox of agents see all toolboxes of this host.
    """

    scopes: ClassVar = {"GET": TokenScope.READ, "POST": TokenScope.ADMIN}

    @operation("list_toolboxes", "List toolboxes", errors=(400,), answer=ToolboxesShape)
    def get(self, request: Request) -> Response:
        read_query(StrictSerializer, request)
        user = person(request)
        is_operator = bool(request.user.has_perm(CONFIGURE))
        names = toolbox_names(DataSettings.now().toolboxes)
        if not is_operator:
            usable = set(agents_for(user).values_list("toolbox", flat=True))
            names = [name for name in names if name in usable]
        return Response(
            {"results": [_show(name, is_operator) for name in names], "next_cursor": None}
        )

    @operation(
        "create_toolbox",
        "Build a toolbox on this host",
        body=NewToolboxBody,
        answers={202: ToolboxDetailShape},
        errors=(409,),
        description="A build takes minutes: read the toolbox until `build.state` is `built` or "
        "`failed`. There is one build at a time. With several hosts, build it on each that has "
        "workers: hosts do not share toolboxes.",
        headers=(IDEMPOTENCY_KEY,),
    )
    @idempotent
    def post(self, request: Request) -> Response:
        body = read_body(NewToolboxBody, request)
        start_build(body["name"], body["packages"], replace=body["replace"], by=person(request))
        return Response(_detail(body["name"]), status=202)


class OneToolbox(ApiView):
    """The endpoints `GET` and `DELETE /toolboxes/{name}`, for people who may configure sandboxes.

    DELETE also requires staff status.
    """

    scopes: ClassVar = {"GET": TokenScope.READ, "DELETE": TokenScope.ADMIN}

    @operation("get_toolbox", "Read a toolbox and its build", answer=ToolboxDetailShape)
    def get(self, request: Request, name: str) -> Response:
        if not request.user.has_perm(CONFIGURE):
            raise NotAllowed(f"This needs the permission {CONFIGURE}.")
        is_there = name in toolbox_names(DataSettings.now().toolboxes)
        if not is_there and build_state(name).state == "none":
            raise NotFound(f"There is no toolbox {name!r} on this host.")
        return Response(_detail(name))

    @operation("delete_toolbox", "Remove a toolbox", answers={204: None}, errors=(409,))
    def delete(self, request: Request, name: str) -> Response:
        remove_toolbox(name, by=person(request))
        return Response(status=204)


def _detail(name: str) -> dict[str, Any]:
    """Return a toolbox, which may not be built yet, for operators."""
    build = build_state(name)
    is_there = name in toolbox_names(DataSettings.now().toolboxes)
    shown = _show(name, True) if is_there else _empty(name)
    return {**shown, "build": {"state": build.state, "detail": build.detail}}


_UNKNOWN: dict[str, Any] = {
    "packages": [],
    "python": "",
    "size": None,
    "built_at": "",
    "problem": "",
}


def _empty(name: str) -> dict[str, Any]:
    return {"name": name, "host": MachineSettings.now().HOST, **_UNKNOWN}


def _show(name: str, is_operator: bool) -> dict[str, Any]:
    shown = _empty(name)
    try:
        found = find_toolbox(DataSettings.now().toolboxes, name)
        problem = mismatch(found) or ""
    except SandboxError as error:
        logger.warning("toolbox %s cannot be used: %s", name, error)
        problem = str(error)
    else:
        shown |= {
            "packages": [
                {"name": package, "version": version}
                for package, version in found.distributions
                if package in found.packages
            ],
            "python": found.python,
            "size": found.size,
            "built_at": found.built_at,
        }
    if problem:
        # The message contains directories of the host.
        shown["problem"] = problem if is_operator else "It cannot be used: ask an operator."
    return shown
