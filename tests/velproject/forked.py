"""`vel` forked from a process that has imported it: see `tests.support.forking`.

The tests in `tests.velproject.cli.test_start`, `test_yes_lets_it_run` at a terminal, and every
`Vel.start` use a new interpreter.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO

from tests.support.forking import Forked, reads_at_start, search_words
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
    "velproject.cli.commands.approvals.ask",
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
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, as `subprocess.run` does.

    Kills it and raises `TimeoutExpired` after the timeout.
    """
    pipes = [os.pipe() for _ in range(3)]
    (given, give), (out, out_end), (err, err_end) = pipes
    told: list[str] = ["", ""]
    threads = [
        threading.Thread(target=_write, args=(os.fdopen(give, "w", encoding="utf-8"), stdin)),
        threading.Thread(target=_read, args=(os.fdopen(out, encoding="utf-8"), told, 0)),
        threading.Thread(target=_read, args=(os.fdopen(err, encoding="utf-8"), told, 1)),
    ]
    ends = [given, out_end, err_end]
    with Forked(
        __name__, arguments=arguments, environment=environment, cwd=cwd, descriptors=ends
    ) as command:
        for end in ends:
            os.close(end)
        for thread in threads:
            thread.start()
        code = command.wait(timeout)
    for thread in threads:
        thread.join()
    return subprocess.CompletedProcess(["vel", *arguments], code, *told)


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


def _write(pipe: IO[str], text: str) -> None:
    try:
        with pipe:
            pipe.write(text)
    except BrokenPipeError:
        pass  # the command does not read all of its input


def _read(pipe: IO[str], told: list[str], at: int) -> None:
    with pipe:
        told[at] = pipe.read()


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
    for _ in import_module("agents.kernel.features").feature_modules("options"):
        pass
    search_words()


def run() -> None:
    if program := os.environ.pop(PROGRAM, ""):
        os.environ["DJANGO_SETTINGS_MODULE"] = SETTINGS
        import_module(program).main()
    else:
        import_module("velproject.cli.main").main()
