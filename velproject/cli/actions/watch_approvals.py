"""The action of `vel approvals watch`: what waits, as it comes and goes, until Ctrl-C."""

from __future__ import annotations

import json
import signal
import sys
import time
from typing import Any, NoReturn

from rich.live import Live

from agents.models import ApprovalRequest
from agents.states import ApprovalStatus
from velproject.cli.commands.approvals.requests import (
    Wanted,
    as_data,
    as_table,
    status_words,
    wanted_requests,
)
from velproject.cli.console import new_console
from velproject.cli.errors import OK
from velproject.cli.terminal import one_line
from velproject.cli.wording import short_input

POLL_SECONDS = 0.5


def watch(*, as_json: bool, wanted: dict[str, Any]) -> int:
    """On a terminal the list itself; else a line for each request that comes or goes."""
    kept = Wanted(**{**wanted, "status": ApprovalStatus.PENDING})
    console = new_console()
    # Started in the background a shell has it ignored; it is the way to end this.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if console.is_terminal and not as_json:
            with Live(as_table(_waiting(kept)), console=console, auto_refresh=False) as live:
                while True:
                    time.sleep(POLL_SECONDS)
                    live.update(as_table(_waiting(kept)), refresh=True)
        _tell_changes(kept, as_json=as_json)
    except KeyboardInterrupt:
        return OK


def _tell_changes(wanted: Wanted, *, as_json: bool) -> NoReturn:
    known: dict[str, ApprovalRequest] = {}
    while True:
        now = {request.id: request for request in _waiting(wanted)}
        for request in now.values():
            before = known.get(request.id)
            if before is None or before.first_approved_at != request.first_approved_at:
                _tell(request, as_json=as_json)
        gone = list(known.keys() - now.keys())
        for request in ApprovalRequest.objects.filter(pk__in=gone).order_by("id"):
            request.run = known[request.id].run
            _tell(request, as_json=as_json)
        known = now
        time.sleep(POLL_SECONDS)


def _tell(request: ApprovalRequest, *, as_json: bool) -> None:
    if as_json:
        line = json.dumps(as_data(request))
    else:
        tool, given = one_line(request.tool, 30), short_input(request.input)
        line = f"{request.id}  {status_words(request)}  {tool}  {given}"
    print(line, flush=True, file=sys.stdout)


def _waiting(wanted: Wanted) -> list[ApprovalRequest]:
    return list(wanted_requests(wanted))
