"""`vel up`: web and workers as one supervised command."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import click

from agents.doors.cli.boot import database
from agents.doors.cli.errors import FAILED, CliError
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import persist_option
from velproject.child import SETTINGS
from velproject.cli.commands.machines.worker import workers_option

with late_imports:
    from django.contrib.auth import get_user_model
    from django.db import connection

    from agents.services.demo import ensure_demo_agent
    from velproject.cli.commands.machines.safe import announce_sandbox, refuse_unsafe
    from velproject.supervise import become_supervisor
    from velproject.up import listen, say

_EVERY_ADDRESS = ("", "0.0.0.0", "::")  # noqa: S104  # compared with, not listened on


@click.command(short_help="Start the web pages, the API and the workers.")
@click.option(
    "--host",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; not VEL_HOST.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port to listen on; 0 for a free one.",
)
@workers_option
@click.option(
    "--no-workers", is_flag=True, help="Start only the web server. `vel worker` executes the runs."
)
@click.option(
    "--grace",
    metavar="SECONDS",
    type=click.FloatRange(0, 3600),
    default=30.0,
    show_default=True,
    help="Seconds that runs have to stop when Vel stops.",
)
@persist_option
def up(
    host: str, port: int, workers: int | None, no_workers: bool, grace: float, persist: Path | None
) -> None:
    """Update the database, then run the web server and the workers until Ctrl-C or SIGTERM."""
    if workers is not None and no_workers:
        raise click.UsageError("--workers and --no-workers exclude each other: use one of them.")
    if workers is not None:
        os.environ["VEL_WORKERS"] = str(workers)  # the settings read it
    with database(persist, log_level="INFO", settings=SETTINGS):
        refuse_unsafe(host)
        # Everybody who signs in gets an agent, even without a network.
        ensure_demo_agent()
        with listening_socket(host, port) as bound:
            port = bound.getsockname()[1]
            announce(host, port)
            if not os.environ.get("VEL_PUBLIC_URL", "").strip():
                os.environ["VEL_PUBLIC_URL"] = local_url(host, port)  # for web and workers
            become_supervisor(bound, grace, with_workers=not no_workers)


FIRST_PASSED_FD = 3
"""The first file descriptor that systemd passes (sd_listen_fds(3))."""


def passed_socket() -> socket.socket | None:
    """Return the listening socket that systemd has passed to this process, or None.

    The variables of systemd are removed: they must not reach other processes.
    """
    pid, count = os.environ.pop("LISTEN_PID", ""), os.environ.pop("LISTEN_FDS", "")
    os.environ.pop("LISTEN_FDNAMES", None)
    if pid != str(os.getpid()):
        return None
    if count != "1":
        raise CliError(f"systemd passed {count} sockets. Expected one.", exit_code=FAILED)
    bound = socket.socket(fileno=FIRST_PASSED_FD)
    if not bound.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        raise CliError("systemd passed a socket that does not listen.", exit_code=FAILED)
    return bound


def listening_socket(host: str, port: int) -> socket.socket:
    if (passed := passed_socket()) is not None:
        return passed
    try:
        return listen(host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise CliError(
                f"Port {port} of {host} is in use. Another vel up may be running: "
                f"stop it, or choose another --port.",
                exit_code=FAILED,
            ) from None
        raise CliError(
            f"Cannot listen on {host} port {port}: {error.strerror}.", exit_code=FAILED
        ) from None


def url_of(host: str, port: int) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}"


def local_url(host: str, port: int) -> str:
    """Return the URL for `host` on this machine. `host` may mean all addresses."""
    return url_of("127.0.0.1" if host in _EVERY_ADDRESS else host, port)


def announce(host: str, port: int) -> None:
    """Print the address of the server, and what is still missing in the set-up."""
    say(f"{url_of(host, port)}/  (press Ctrl-C to stop)")
    if not get_user_model().objects.filter(is_superuser=True, is_active=True).exists():
        say("no administrator yet; create one: vel user create NAME --admin")
    announce_sandbox()
    connection.close()
