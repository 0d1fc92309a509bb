"""The action of `vel up`."""

from __future__ import annotations

import errno
import socket

from django.contrib.auth import get_user_model
from django.db import connection

from agents.services.demo import ensure_demo_agent
from sandbox.probe import check_host
from velproject.cli.actions.safe import refuse_unsafe
from velproject.cli.errors import FAILED, CliError
from velproject.supervise import become_supervisor
from velproject.up import listen, say


def up(*, host: str, port: int, grace: float) -> None:
    """Start web and workers and stay until they are told to stop."""
    refuse_unsafe(host)
    # So that everybody who signs in has something to start with, also offline.
    ensure_demo_agent()
    with listening_socket(host, port) as bound:
        announce(host, bound.getsockname()[1])
        become_supervisor(bound, grace)


def listening_socket(host: str, port: int) -> socket.socket:
    try:
        return listen(host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise CliError(
                f"port {port} of {host} is in use: another vel up may be running; "
                f"stop it, or choose another --port.",
                exit_code=FAILED,
            ) from None
        raise CliError(
            f"cannot listen on {host} port {port}: {error.strerror}.", exit_code=FAILED
        ) from None


def announce(host: str, port: int) -> None:
    """Where it is, and what is still to be done before it is of use."""
    shown = f"[{host}]" if ":" in host else host
    say(f"http://{shown}:{port}/  (Ctrl-C stops it)")
    if not get_user_model().objects.filter(is_superuser=True, is_active=True).exists():
        say("no administrator yet; make one with: vel user create NAME --admin")
    for problem in check_host().problems:
        say(f"no sandbox, so commands will be refused: {problem}")
    connection.close()
