"""The processes of a site, forked from one with imported modules: see `tests.support.forking`.

Web servers that are started without a fork are in `tests.velproject.web.test_body_limit` and
`tests.velproject.test_up`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import IO, Literal

from tests.support import process_guard
from tests.support.forking import ROOT, Forked, search_words

Role = Literal["writer", "worker", "server"]

_FIRST_USED = (
    "agents.providers.scripted",
    "django.contrib.sessions.backends.db",
    "django.contrib.staticfiles.finders",
    "django.db.backends.postgresql.base",
    "django.db.backends.sqlite3.base",
    "velproject.urls",
    "whitenoise.middleware",
)


class Talking:
    """A process that reads lines and answers with lines. It ends at the end of its input."""

    def __init__(
        self, role: Role, environment: Mapping[str, str], *, namespaces_of: int | None = None
    ) -> None:
        (given, give), (told, tell) = os.pipe(), os.pipe()
        try:
            self._process = _fork(role, environment, [given, tell, 2], namespaces_of)
        finally:
            os.close(given)
            os.close(tell)
            self.stdin: IO[str] = open(give, "w", encoding="utf-8")  # noqa: SIM115
            self.stdout: IO[str] = open(told, encoding="utf-8")  # noqa: SIM115

    @property
    def pid(self) -> int:
        return self._process.pid

    def close(self, timeout: float) -> None:
        """Wait for the end. Kill the process after the timeout."""
        with self._process, self.stdout:
            self.stdin.close()
            self._process.wait(timeout)


def fork_server(
    environment: Mapping[str, str], listening: int, *, namespaces_of: int | None = None
) -> Forked:
    """Serve at a socket, which is the standard input of the process."""
    return _fork("server", environment, [listening, 1, 2], namespaces_of)


def _fork(
    role: Role,
    environment: Mapping[str, str],
    descriptors: list[int],
    namespaces_of: int | None,
) -> Forked:
    process = Forked(
        __name__,
        arguments=[role],
        environment=environment,
        cwd=ROOT,
        descriptors=descriptors,
        namespaces_of=namespaces_of,
    )
    process_guard.share(process.pid)
    return process


# In the parent and in the processes ---------------------------------------------------------------


def import_modules() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "velproject.settings"
    import_module("django").setup()
    child = import_module("velproject.child")
    for name in (*child.SHARED, *_FIRST_USED):
        import_module(name)
    import_module("agents.middleware.registry").installed_middleware()
    import_module("tests.support.site_writer")
    import_module("tests.support.site_worker")
    search_words()


def run() -> None:
    role = sys.argv[1]
    if role == "server":
        # Not in the parent: each process needs its own reactor of Twisted.
        import_module("velproject.child").run_web(0)
        return
    import_module("django").setup()
    import_module(f"tests.support.site_{role}").main()
