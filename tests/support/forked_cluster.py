"""A cluster of workers forked from a process with imported modules: see `tests.support.forking`.

Clusters that are started without a fork are in `tests.chaos.test_locked_guard`, in
`tests.velproject.test_up`, and in the storms with `qcluster`.
"""

from __future__ import annotations

import os
from importlib import import_module, reload
from pathlib import Path
from typing import IO, Any

from tests.support.forking import Forked, reads_at_start, search_words

SETTINGS = "tests.chaos.settings"
_CHANGES_THE_APPS = "VEL_TEST_DIES_WITH_RESULT"
_PRELOAD = "agents.features.databases.preload"
_FIRST_USED_IN_WORKERS = (
    "agents.providers.anthropic.provider",
    "agents.providers.scripted",
    "django.db.backends.postgresql.base",
    "django.db.backends.sqlite3.base",
    "velproject.cluster",
)


def can_fork(changed: dict[str, str]) -> bool:
    """Return whether a forked cluster equals a new one. `changed` are its environment variables."""
    return _CHANGES_THE_APPS not in changed and not reads_at_start(changed)


def fork_cluster(environment: dict[str, str], cwd: Path, log: IO[bytes]) -> Forked:
    """Start a cluster in a separate session."""
    with open(os.devnull, "rb") as nothing:
        return Forked(
            __name__,
            environment=environment,
            cwd=cwd,
            descriptors=[nothing.fileno(), log.fileno(), log.fileno()],
            session="own",
        )


# In the parent and in the clusters ---------------------------------------------------------------


def import_modules() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = SETTINGS
    import_module("django").setup()
    child = import_module("velproject.child")
    for name in (*child.SHARED, *import_module(_PRELOAD).DRIVERS, *_FIRST_USED_IN_WORKERS):
        import_module(name)
    import_module("agents.middleware.registry").installed_middleware()
    search_words()


def run() -> None:
    _read_queue_settings_again()
    import_module("velproject.child").run_workers()


def _read_queue_settings_again() -> None:
    """Read django-q2's settings again. It reads them on import, into a class in its modules."""
    module: Any = import_module("django_q.conf")
    everywhere = module.Conf
    reload(module)
    for name, value in vars(module.Conf).items():
        if not name.startswith("__"):
            setattr(everywhere, name, value)
    module.Conf = everywhere
