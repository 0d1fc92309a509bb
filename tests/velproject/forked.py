"""`vel` forked from a process that has imported it: see `tests.support.forking`.

The tests in `tests.velproject.cli.test_start`, `test_yes_lets_it_run` at a terminal, and every
`Vel.start` use a new interpreter.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

from tests.support.forking import Forked, reads_at_start, run_to_end, search_words
from velproject.cli.commands import TABLE

SETTINGS = "velproject.cli.settings"
PROGRAM = "VEL_TEST_PROGRAM"
"""The variable with the module whose `main` a process runs instead of the command."""
_OTHERWISE = frozenset({"up", "worker"})
"""Commands with the settings of a server."""
_CHANGES_THE_APPS = "VEL_DISABLED_FEATURES"
_FIRST_USED_IN_COMMANDS = (
    "agents.auth_backends",
    "agents.services.row_hooks",
    "skills_app.library.scan.scanning",
    "text_scanner.scanning",
    "agents.features.approvals.cli.ask",
    "velproject.cli.main",
)


def can_fork(arguments: Sequence[str], changed: Mapping[str, str]) -> bool:
    """Return whether a forked command equals a new one. `changed` are its environment variables."""
    return not (
        _OTHERWISE.intersection(arguments)
        or _CHANGES_THE_APPS in changed
        or reads_at_start(changed)
    )


def run_forked(
    arguments: Sequence[str],
    *,
    stdin: str,
    environment: Mapping[str, str],
    cwd: Path,
    timeout: float,
    namespaces_of: int | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end: see `tests.support.forking.run_to_end`."""
    return run_to_end(
        __name__,
        arguments,
        stdin=stdin,
        environment=environment,
        cwd=cwd,
        timeout=timeout,
        namespaces_of=namespaces_of,
    )


def fork_at_terminal(
    arguments: Sequence[str], *, environment: Mapping[str, str], cwd: Path, terminal: int
) -> Forked:
    """Start a command in a session with this controlling terminal."""
    return Forked(
        __name__,
        arguments=arguments,
        environment=environment,
        cwd=cwd,
        descriptors=[terminal] * 3,
        session="terminal",
    )


# In the parent and in the commands ---------------------------------------------------------------


def import_modules() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = SETTINGS
    import_module("django").setup()
    import_module("agents.doors.database_schema")
    for module in TABLE:
        if not _OTHERWISE.intersection(TABLE[module]):
            import_module(module)
    import_module("agents.middleware.registry").installed_middleware()
    for name in _FIRST_USED_IN_COMMANDS:
        import_module(name)
    # The REST API of `vel schema` has registered some of these. Checks of Django need them all.
    import_module("agents.admin")
    for _ in import_module("agents.kernel.features").feature_modules("options"):
        pass
    search_words()


def run() -> None:
    if program := os.environ.pop(PROGRAM, ""):
        os.environ["DJANGO_SETTINGS_MODULE"] = SETTINGS
        import_module(program).main()
    else:
        import_module("velproject.cli.main").main()
