"""Programs without a project, forked from a process with imported modules: `tests.support.forking`.

`test_scripts` and `tests.agents.sdk.streaming.test_outputs` also start new interpreters.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

_FIRST_USED_IN_RUNS = (
    "agents.auth_backends",
    "agents.checks.settings",
    "agents.checks.tools",
    "agents.doors.database_schema",
    "agents.engine.worker",
    "agents.providers.anthropic.provider",
    "agents.providers.openai",
    "agents.providers.scripted",
    "agents.sdk.components.spawner",
    "agents.sdk.rows.definition",
    "agents.sdk.rows.sessions",
    "agents.sdk.streaming.follow",
    "agents.sdk.streaming.modes",
    "agents.sdk.streaming.outputs",
    "agents.sdk.toolkits",
    "agents.sdk.vel_harness",
    "django.db.backends.sqlite3.base",
)


def import_modules() -> None:
    project = import_module("agents.sdk.environment.project")
    # As the first agent of a program does. Each forked program makes its own settings.
    project._configure("of-the-parent.sqlite3")
    import_module("django").setup()
    for name in _FIRST_USED_IN_RUNS:
        import_module(name)
    import_module("agents.middleware.registry").installed_middleware()
    import_module("agents.kernel.settings").forget()
    project._own = None


def run() -> None:
    """Run the program in the argument, as `python -c` does."""
    _, text = sys.argv
    program = sys.modules["__main__"] = ModuleType("__main__")
    sys.path.insert(0, "")
    sys.argv = ["-c"]
    exec(compile(text, "<string>", "exec"), vars(program))
