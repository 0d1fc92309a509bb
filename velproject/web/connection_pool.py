"""Requests share connections to PostgreSQL.

Django opens one for each request: under an ASGI server each request has threads of its own, so
that none can be kept. 300 runs beside 100 watchers and 20 approvers, on two cores with the server
of PostgreSQL: 61 s with a connection for each request, 34 s with these (measured once each).
"""

from __future__ import annotations

from django.conf import settings

CONNECTIONS = 32
"""Of one web process, at most; a request that gets none in time is answered 503."""
PATIENCE = 5.0
"""Seconds that a request waits for one: also while the server cannot be reached."""


def pool_connections() -> None:
    """Let this process share them. To be called before any is opened; nothing on SQLite."""
    default = settings.DATABASES["default"]
    if default["ENGINE"] != "django.db.backends.postgresql":
        return
    pool = {"min_size": 1, "max_size": CONNECTIONS, "timeout": PATIENCE, "name": "vel-web"}
    default["OPTIONS"] = {**default.get("OPTIONS", {}), "pool": pool}
    default["CONN_HEALTH_CHECKS"] = True  # a server that was restarted is no error of the next page
