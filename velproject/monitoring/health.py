"""`/healthz` and `/readyz` for load balancers and orchestrators, which do not sign in.

Anonymous requests get only the status, under any host name. Staff who may see the status page also
get the results of the checks.
"""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import DatabaseError
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from velproject.monitoring.readiness import Check, readiness
from velproject.monitoring.status_page import may_see_status

ALIVE = {"status": "ok"}
_threads = ThreadPoolExecutor(2, thread_name_prefix="vel-health")


@require_safe
@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    """Return 200 as a sign that this process runs, without any check."""
    return JsonResponse(ALIVE)


@require_safe
@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """Return 200 if all checks succeed, otherwise 503."""
    checks = readiness.checks()
    told = _told(checks)
    if _may_see_checks(request):
        told["checks"] = [
            {"name": each.name, "ok": each.ok, "detail": each.detail} for each in checks
        ]
    return JsonResponse(told, status=_status(checks))


def _may_see_checks(request: HttpRequest) -> bool:
    try:
        return may_see_status(request)
    except DatabaseError:  # sessions are unreachable, too, and the checks report the problem
        return False


def _told(checks: list[Check]) -> dict[str, Any]:
    return {"status": "ok" if all(each.ok for each in checks) else "failing"}


def _status(checks: list[Check]) -> int:
    return 200 if all(each.ok for each in checks) else 503


class HealthFirst:
    """ASGI middleware that answers GET and HEAD of /healthz and /readyz without Django.

    It answers even if all threads of Django are busy. Requests with a cookie go to Django, which
    shows staff the results of the checks, too.
    """

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        path = scope.get("path")
        ours = path in ("/healthz", "/readyz") and scope.get("method") in ("GET", "HEAD")
        if not ours or any(name == b"cookie" for name, _ in scope["headers"]):
            await self._application(scope, receive, send)
            return
        status, told = 200, dict[str, Any](ALIVE)
        if path == "/readyz":
            loop = asyncio.get_running_loop()
            checks = await loop.run_in_executor(_threads, readiness.checks)
            status, told = _status(checks), _told(checks)
        body = json.dumps(told).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        is_head = scope["method"] == "HEAD"
        await send({"type": "http.response.body", "body": b"" if is_head else body})
