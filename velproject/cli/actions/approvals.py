"""The actions of `vel approvals`."""

from __future__ import annotations

import json
import sys
from typing import Any

from django.db.models import QuerySet
from rich.text import Text

from agents.middleware import decisions
from agents.models import POOL, ApprovalRequest
from agents.selectors.visible import approvals_for
from agents.services.approvals import DecisionRequest
from agents.states import ApprovalStatus, RunStatus
from velproject.cli.actions.ask import show_request
from velproject.cli.actions.display import new_console
from velproject.cli.actions.find import by_id
from velproject.cli.actions.local_user import local_user
from velproject.cli.actions.orphans import is_orphan
from velproject.cli.actions.wording import print_table, short_input
from velproject.cli.boot import again
from velproject.cli.errors import CliError
from velproject.cli.terminal import one_line


def list_approvals(*, as_json: bool, decided_too: bool) -> None:
    """Oldest first."""
    requests = _mine()
    if not decided_too:
        requests = requests.filter(status=ApprovalStatus.PENDING)
    rows = list(requests.select_related("run"))
    if as_json:
        for request in rows:
            print(json.dumps(as_data(request)))
        return
    if not rows:
        print("Nothing waits for you.", file=sys.stderr)
        return
    print_table(
        new_console(),
        ("REQUEST", "RUN", "STATUS", "TOOL", "INPUT"),
        (
            (
                request.id,
                request.run_id,
                request.decision or request.status,
                Text(one_line(request.tool, 30)),
                Text(short_input(request.input)),
            )
            for request in rows
        ),
    )


def show(*, request_id: str, as_json: bool) -> None:
    """The whole request."""
    request = by_id(_mine(), request_id, "request")
    if as_json:
        print(json.dumps(as_data(request)))
        return
    console = new_console()
    console.print(f"request {request.id} of run {request.run_id}: {request.status}")
    show_request(request, console)
    console.print(
        f"  decisions: {', '.join(request.allowed_decisions)}\n  digest: {request.digest}"
    )


def decide(
    *,
    request_id: str,
    decision: str,
    reason: str,
    input_json: str | None,
    digest: str | None,
) -> None:
    """Record the decision and say how the run goes on."""
    owner = local_user()
    request = by_id(approvals_for(owner), request_id, "request")
    answer = DecisionRequest(
        decision=decision,
        digest=digest or request.digest,
        input=_parsed(input_json) if input_json is not None else None,
        reason=reason,
    )
    decided = decisions.decide(request.id, answer, by=owner)
    run = decided.run
    run.refresh_from_db()
    print(f"{request.tool}: {decision}.")
    if run.status == RunStatus.WAITING:
        print("The run waits for more: vel approvals list shows it.")
    elif run.executor != POOL and is_orphan(run):
        print(f"The run goes on with: {again(f'runs resume {run.id}')}")


def _mine() -> QuerySet[ApprovalRequest]:
    return approvals_for(local_user())


def _parsed(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise CliError(f"--input is not JSON: {error}.") from None
    if not isinstance(value, dict):
        raise CliError("--input must be a JSON object, the whole input that should run instead.")
    return value


def as_data(request: ApprovalRequest) -> dict[str, Any]:
    return {
        "id": request.id,
        "run": request.run_id,
        "kind": request.kind,
        "tool": request.tool,
        "input": request.input,
        "prompt": request.prompt,
        "status": request.status,
        "decision": request.decision,
        "allowed_decisions": request.allowed_decisions,
        "digest": request.digest,
        "created_at": request.created_at.isoformat(),
        "expires_at": request.expires_at.isoformat() if request.expires_at else None,
    }
