"""The supervisor process of `vel up`: `python -m velproject.supervise`.

`vel up` checks the settings and migrates, for which it imports all of Vel. It would keep all of
that in memory while it only watches its children. Therefore, it replaces itself by this program:
the same pid, the same output, the socket that is already bound, and half of the memory.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import sys
from importlib import import_module
from typing import NoReturn

from agents.doors.cli.errors import INTERRUPTED
from velproject.child import imports_without_collection, set_up_without_admin


def become_supervisor(bound: socket.socket, grace: float, *, with_workers: bool = True) -> NoReturn:
    """Replace this process by the supervisor. `bound` is the listening socket to use.

    The environment stays. Raises `OSError` if the interpreter cannot be started again.
    """
    bound.set_inheritable(True)
    options = ["--listen-fd", str(bound.fileno()), "--grace", str(grace)]
    options += [] if with_workers else ["--no-workers"]
    sys.stdout.flush()
    sys.stderr.flush()
    command = [sys.executable, "-P", "-m", "velproject.supervise", *options]
    os.execv(sys.executable, command)  # noqa: S606  # no shell has a part in it


def main() -> int:
    """Watch the web server and the workers until a signal to stop. Return the exit code."""
    parser = argparse.ArgumentParser(prog="velproject.supervise")
    parser.add_argument("--listen-fd", type=int, required=True)
    parser.add_argument("--grace", type=float, required=True)
    parser.add_argument("--no-workers", action="store_true")
    arguments = parser.parse_args()
    try:
        with imports_without_collection():
            set_up_without_admin()
        supervise = import_module("velproject.up").supervise
        with_workers = not arguments.no_workers
        asyncio.run(supervise(arguments.listen_fd, arguments.grace, with_workers=with_workers))
    except KeyboardInterrupt:  # before it handles signals: no child has been started
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
