"""Endpoint for toolboxes, the Python environments of agents."""

from __future__ import annotations

import logging
from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.serializers.toolboxes import ToolboxesShape
from agents.doors.rest.base import ApiView, person
from agents.doors.rest.operations import operation
from agents.doors.rest.serializers import StrictSerializer, read_query
from agents.models import TokenScope
from agents.selectors.visible import agents_for
from agents.settings import DataSettings
from sandbox.errors import SandboxError
from sandbox.toolboxes.find import find_toolbox, toolbox_names
from sandbox.toolboxes.toolbox import mismatch

logger = logging.getLogger(__name__)

CONFIGURE = "agents.configure_sandbox"


class Toolboxes(ApiView):
    """The endpoint `GET /toolboxes`: those of agents that you can use.

    People who can configure the sandbox of agents see all toolboxes of this host.
    """

    scopes: ClassVar = {"GET": TokenScope.READ}

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


def _show(name: str, is_operator: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "name": name,
        "packages": [],
        "python": "",
        "size": None,
        "built_at": "",
        "problem": "",
    }
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
