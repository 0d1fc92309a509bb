"""Pool of connections to PostgreSQL, which requests share.

Django opens one connection for each request: under an ASGI server each request has its own threads,
so that no connection can be kept. 300 runs with 100 watchers and 20 approvers, on two cores with
the server of PostgreSQL: 61 s with a connection for each request, 34 s with the pool (measured once
each).
"""

from __future__ import annotations

from django.conf import settings

CONNECTIONS = 32
"""The most connections of one web process. A request that has to wait too long gets a 503."""
PATIENCE = 5.0
"""Seconds that a request waits for one: also while the server cannot be reached."""


def pool_connections() -> None:
    """Let the requests of this process share connections. Without effect for SQLite.

    Call this before the first connection.
    """
    default = settings.DATABASES["default"]
    if default["ENGINE"] != "django.db.backends.postgresql":
        return
    pool = {"min_size": 1, "max_size": CONNECTIONS, "timeout": PATIENCE, "name": "vel-web"}
    default["OPTIONS"] = {**default.get("OPTIONS", {}), "pool": pool}
    default["CONN_HEALTH_CHECKS"] = True  # after a restart of PostgreSQL, the next page works
