"""The admin's status page: processes, limits and problems of the installation."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.core.checks import ERROR, WARNING, run_checks
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from agents.doors.admin.numbers import span
from agents.hidden_text import visible
from agents.selectors.dashboard import work_state
from agents.selectors.metrics import (
    SeenProcess,
    database_bytes,
    leases,
    runs_by_status,
    seen_processes,
)
from agents.selectors.status import feature_sections, model_errors
from agents.services.machines.actions import machine_states
from agents.states import RunStatus, WaitReason
from sandbox.linux.probe import check_host
from velproject.monitoring.readiness import readiness

PERMISSION = "agents.view_serverprocess"
MOST_SHOWN = 200
_WAITS = dict(WaitReason.choices)
_LOOKS = {"alive": "completed", "silent": "failed", "dead": "failed"}


def may_see_status(request: HttpRequest) -> bool:
    user = request.user
    return bool(user.is_active and user.is_staff and user.has_perm(PERMISSION))


@require_safe
@never_cache
def status_page(request: HttpRequest) -> HttpResponse:
    """Show the status page to staff with the permission `view_serverprocess`.

    This permission is enough because the error texts on the page contain no keys.
    """
    if not may_see_status(request):
        raise PermissionDenied
    state = work_state()
    age = state.oldest_seconds
    seen = seen_processes()
    held = leases()
    context: dict[str, Any] = {
        **admin.site.each_context(request),
        "title": gettext("Status"),
        "checks": [
            {"name": each.name, "ok": each.ok, "detail": visible(each.detail)}
            for each in readiness.checks()
        ],
        "processes": [_process(each, held.held) for each in seen[:MOST_SHOWN]],
        "hosts": [
            {
                "name": visible(each.name),
                "state": each.state,
                "look": _LOOKS.get(each.state, "waiting"),
                "threads": each.threads,
                "seen": span(timedelta(seconds=each.silent_for)),
            }
            for each in machine_states()[:MOST_SHOWN]
        ],
        "unknown": _unknown_holders(seen, held.held),
        "lost": held.lost,
        "state": state,
        "queue": settings.Q_CLUSTER["name"],
        "oldest": "" if age is None else span(timedelta(seconds=age)),
        "runs": [
            (status, RunStatus(status).label, _WAITS.get(reason, reason), int(number))
            for (status, reason), number in sorted(runs_by_status().items())
        ],
        "limits": check_host().limits,
        "errors": [
            {
                "provider": visible(row.provider),
                "runs": row.runs,
                "codes": ", ".join(f"{code} ({n})" for code, n in sorted(row.codes.items())),
                "last": visible(row.last),
                "ago": span(timezone.now() - row.at),
            }
            for row in model_errors()
        ],
        "sections": _sections(),
        "database": _database(),
        "warnings": _warnings(),
    }
    return render(request, "admin/agents/status.html", context)


def _process(seen: SeenProcess, held: dict[str, int]) -> dict[str, Any]:
    row = seen.row
    limits = json.loads(row.limits) if row.limits else []
    return {
        "row": row,
        "is_alive": seen.is_alive,
        "seen": span(timedelta(seconds=seen.seconds_ago)),
        "up": span(timedelta(seconds=max(0.0, row.seen_at - row.started_at))),
        "leases": held.get(row.name, 0),
        "limits": ", ".join(f"{limit} ({by})" for limit, by, _ in limits),
    }


def _unknown_holders(seen: list[SeenProcess], held: dict[str, int]) -> list[tuple[str, int]]:
    """Return names and numbers of runs of processes that have no row in `seen`.

    These are programs and commands that execute their own runs.
    """
    known = {each.row.name for each in seen}
    return [(visible(name), number) for name, number in held.items() if name not in known]


def _sections() -> list[dict[str, Any]]:
    return [
        {"title": section.title, "facts": section.facts, "note": visible(section.note)}
        for section in feature_sections()
    ]


def _database() -> dict[str, str]:
    size = database_bytes()
    return {
        "vendor": connection.vendor,
        "size": "" if size is None else f"{number_format(size / 1e6, 1, force_grouping=True)} MB",
    }


def _warnings() -> list[dict[str, str]]:
    """Return the messages of `manage.py check --deploy`."""
    found = run_checks(include_deployment_checks=True)
    return [
        {
            "level": "error" if message.level >= ERROR else "warning",
            "id": message.id or "",
            "text": visible(str(message.msg)),
            "hint": visible(message.hint or ""),
        }
        for message in found
        if message.level >= WARNING and not message.is_silenced()
    ]
