"""`/metrics` for Prometheus. Requests need the operator's token."""

from __future__ import annotations

import hmac
import threading
import time

from django.db import DatabaseError
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from agents.selectors.metrics import counted, gauges
from agents.settings import MetricsSettings
from agents.telemetry.counters import CONTENT_TYPE, text_of

KEEP_SECONDS = 2.0
"""Several scrapers in this time share one measurement."""

_lock = threading.Lock()
_kept: tuple[float, str] = (float("-inf"), "")


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Return the metrics; 401 without the right token, and 503 without the database.

    Returns 404 if no token is set, to hide the endpoint.
    """
    token = MetricsSettings.now().METRICS_TOKEN
    if not token:
        raise Http404
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not hmac.compare_digest(given.encode(), token.encode()):
        return HttpResponse(status=401, headers={"WWW-Authenticate": 'Bearer realm="metrics"'})
    try:
        text = _text()
    except DatabaseError:
        return HttpResponse("the database is unavailable\n", status=503, content_type="text/plain")
    return HttpResponse(text, content_type=CONTENT_TYPE)


def _text() -> str:
    global _kept
    with _lock:
        if time.monotonic() - _kept[0] > KEEP_SECONDS:
            _kept = (time.monotonic(), text_of(gauges(), counted()))
        return _kept[1]
