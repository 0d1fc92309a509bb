"""The actions of `vel approvals` that answer: what was shown is what is decided."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agents.middleware import decisions
from agents.models import POOL, ApprovalKind, ApprovalRequest
from agents.selectors.family import root_of
from agents.services.approvals import DecisionRequest
from agents.services.edited_reading import reading_of_edit
from agents.services.errors import ServiceError
from agents.services.grants import GrantTerms
from agents.states import ApprovalStatus, Decision, RunStatus
from velproject.cli.boot import again
from velproject.cli.commands.approvals.ask import confirm
from velproject.cli.commands.approvals.edit_input import content_of, edited_in_editor, parsed_input
from velproject.cli.commands.approvals.requests import requests_with_rows
from velproject.cli.commands.approvals.shown_request import show_reading, show_request
from velproject.cli.commands.runs.orphans import is_orphan
from velproject.cli.console import new_console
from velproject.cli.errors import OK, USAGE, CliError
from velproject.cli.find import by_id
from velproject.cli.local_user import local_user
from velproject.cli.terminal import one_line


def decide(
    *,
    request_ids: Sequence[str],
    decision: str,
    reason: str = "",
    digest: str | None = None,
    yes: bool = False,
    always: dict[str, Any] | None = None,
    input_json: str | None = None,
) -> int:
    """The same answer to each request, one by one, bound to what each was when it was read.

    At a terminal each is shown, and an approval is confirmed, unless the digest or `yes` say that
    it was looked at. One that is refused does not keep the others; the exit code tells.
    """
    terms = GrantTerms(**always) if always is not None else None
    given = parsed_input(input_json) if input_json is not None else None
    # All are found before the first is decided.
    requests = [by_id(requests_with_rows(), beginning, "request") for beginning in request_ids]
    code = OK
    for request in dict.fromkeys(requests):
        answer = DecisionRequest(decision, digest or request.digest, given, reason, terms)
        if not _shown_and_confirmed(request, answer, is_sure=yes or digest is not None):
            print(f"{request.id}: nothing decided.", file=sys.stderr)
            continue
        try:
            _record(request, answer)
        except ServiceError as error:
            if len(requests) == 1:
                raise
            print(f"{request.id}: {one_line(error.message, 500)}", file=sys.stderr)
            code = USAGE
    return code


def edit(
    *,
    request_id: str,
    input_json: str | None,
    content_file: Path | None,
    in_editor: bool,
    digest: str | None,
    yes: bool,
) -> int:
    """Approve something else than was asked: the whole input, or the whole file of the memory."""
    request = by_id(requests_with_rows(), request_id, "request")
    bound = digest or request.digest
    given: dict[str, Any] | None
    if content_file is not None:
        if request.kind != ApprovalKind.MEMORY:
            raise CliError("--content-file goes with edits of the memory: use --input here.")
        given = content_of(content_file)
    elif input_json is not None:
        given = parsed_input(input_json)
    elif in_editor:
        given = edited_in_editor(request)
        if given is None:
            print(f"{request.id}: nothing changed, nothing decided.", file=sys.stderr)
            return OK
    else:
        raise CliError("Say what it should be instead: --input, --content-file or --editor.")
    answer = DecisionRequest(Decision.EDIT, bound, given)
    if not _shown_and_confirmed(request, answer, is_sure=yes or digest is not None):
        print(f"{request.id}: nothing decided.", file=sys.stderr)
        return OK
    _record(request, answer)
    return OK


def _shown_and_confirmed(
    request: ApprovalRequest, answer: DecisionRequest, *, is_sure: bool
) -> bool:
    """Whether the answer is to be given: a script has said so, a person has seen the request."""
    if is_sure or not sys.stdin.isatty():
        return True
    console = new_console(stderr=True)
    show_request(request, console)
    if answer.input is not None:
        show_reading(reading_of_edit(request, answer.input), console)
    if answer.decision == Decision.REJECT:
        return True
    return confirm(f"{answer.decision.capitalize()} this?", console)


def _record(request: ApprovalRequest, answer: DecisionRequest) -> None:
    """Decide, and say how the run goes on."""
    decided = decisions.decide(request.id, answer, by=local_user())
    tool = one_line(request.tool)
    if decided.status == ApprovalStatus.PENDING:
        print(f"{tool}: approved first. A second person has to approve it, too.")
        return
    run = decided.run
    run.refresh_from_db()
    print(f"{tool}: {answer.decision}.")
    if run.status == RunStatus.WAITING:
        print("The run waits for more: vel approvals list shows it.")
    elif run.executor != POOL and is_orphan(run):
        print(f"The run goes on with: {again(f'runs resume {root_of(run).id}')}")
