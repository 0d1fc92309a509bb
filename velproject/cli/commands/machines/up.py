"""The action of `vel up`."""

from __future__ import annotations

import errno
import os
import socket

from django.contrib.auth import get_user_model
from django.db import connection

from agents.services.demo import ensure_demo_agent
from sandbox.probe import check_host
from velproject.cli.commands.machines.safe import refuse_unsafe
from velproject.cli.errors import FAILED, CliError
from velproject.env import text
from velproject.supervise import become_supervisor
from velproject.up import listen, say

_EVERY_ADDRESS = ("", "0.0.0.0", "::")  # noqa: S104  # compared with, not listened on


def up(*, host: str, port: int, grace: float) -> None:
    """Start web and workers and stay until they are told to stop."""
    refuse_unsafe(host)
    # So that everybody who signs in has something to start with, also offline.
    ensure_demo_agent()
    with listening_socket(host, port) as bound:
        port = bound.getsockname()[1]
        announce(host, port)
        if not text("VEL_PUBLIC_URL"):
            os.environ["VEL_PUBLIC_URL"] = local_url(host, port)  # for web and workers
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


def url_of(host: str, port: int) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}"


def local_url(host: str, port: int) -> str:
    """Where this machine reaches what listens on `host`, which may mean all its addresses."""
    return url_of("127.0.0.1" if host in _EVERY_ADDRESS else host, port)


def announce(host: str, port: int) -> None:
    """Where it is, and what is still to be done before it is of use."""
    say(f"{url_of(host, port)}/  (Ctrl-C stops it)")
    if not get_user_model().objects.filter(is_superuser=True, is_active=True).exists():
        say("no administrator yet; make one with: vel user create NAME --admin")
    for problem in check_host().problems:
        say(f"no sandbox, so commands will be refused: {problem}")
    connection.close()
