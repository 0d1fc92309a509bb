"""The commands of `vel approvals` that decide: each decision applies to the request as shown."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from agents.doors.cli.boot import again, database
from agents.doors.cli.errors import OK, USAGE, CliError
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import persist_option
from agents.doors.cli.terminal import one_line
from agents.features.approvals.cli.requests import approvals

with late_imports:
    from agents.doors.cli.console import new_console, show_review
    from agents.doors.cli.find import by_id
    from agents.doors.cli.local_user import local_user
    from agents.doors.cli.orphans import is_orphan
    from agents.doors.cli.questions import confirm
    from agents.features.approvals.cli.ask import (
        content_of,
        edited_in_editor,
        parsed_input,
    )
    from agents.features.approvals.cli.requests import requests_with_rows
    from agents.features.approvals.cli.shown_request import show_request
    from agents.features.approvals.edited_review import review_of_edit
    from agents.kernel.proposals import proposal_kind, proposal_kinds
    from agents.middleware import decisions
    from agents.models import POOL, ApprovalRequest
    from agents.selectors.family import root_of
    from agents.services.approvals.decisions import DecisionRequest
    from agents.services.approvals.grants import GrantTerms
    from agents.services.errors import ServiceError
    from agents.states import ApprovalStatus, Decision, RunStatus

DECISIONS = ["approve", "edit", "reject", "respond"]

_digest = click.option(
    "--digest",
    help="Decide one REQUEST without a question, but only if it still has this digest (see "
    "`vel approvals show`).",
)
_yes = click.option("--yes", is_flag=True, help="Do not show the request, and do not ask.")
_input = click.option(
    "--input", "input_json", metavar="JSON", help="The complete input that runs instead."
)
_requests = click.argument("request_ids", metavar="REQUEST…", nargs=-1, required=True)


@approvals.command("approve")
@_requests
@persist_option
@_digest
@_yes
@click.option(
    "--always",
    type=click.Choice(["input", "command", "path", "tool"]),
    help="Also give a grant: for this input, matching commands or paths, or the whole tool.",
)
@click.option(
    "--pattern",
    default="",
    help="With --always command: a regular expression (RE2). With --always path: a path with *.",
)
@click.option("--days", type=int, help="With --always: days that the grant is valid. Default: 7.")
@click.option("--uses", type=int, help="With --always: calls that the grant covers. Default: 100.")
@click.option("--everybody", is_flag=True, help="With --always: for the runs of all users.")
def approve(
    always: str | None,
    pattern: str,
    days: int | None,
    uses: int | None,
    everybody: bool,
    **arguments: Any,
) -> int:
    """Approve requests as they are shown."""
    terms: dict[str, Any] | None = None
    if always is not None:
        terms = {"match": always, "pattern": pattern, "for_everybody": everybody}
        terms |= {"days": days} if days is not None else {}
        terms |= {"max_uses": uses} if uses is not None else {}
    elif pattern or everybody or days is not None or uses is not None:
        raise click.UsageError("--pattern, --days, --uses and --everybody require --always.")
    return _decide("approve", always=terms, **arguments)


@approvals.command("reject")
@_requests
@persist_option
@_digest
@click.option("--reason", default="", help="Reason for the agents.")
def reject(**arguments: Any) -> int:
    """Reject requests; their runs continue without the calls."""
    return _decide("reject", **arguments)


@approvals.command("edit")
@click.argument("request_id", metavar="REQUEST")
@persist_option
@_digest
@_yes
@_input
@click.option(
    "--content-file",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="For an edit of the memory: the whole file that is saved instead.",
)
@click.option("--editor", "in_editor", is_flag=True, help="Edit it in $VISUAL or $EDITOR.")
def edit(
    request_id: str,
    persist: Path | None,
    digest: str | None,
    yes: bool,
    input_json: str | None,
    content_file: Path | None,
    in_editor: bool,
) -> int:
    """Approve a request with changes."""
    if sum([input_json is not None, content_file is not None, in_editor]) != 1:
        raise click.UsageError(
            "Expected exactly one of --input JSON, --content-file FILE and --editor."
        )
    with database(persist):
        request = by_id(requests_with_rows(), request_id, "request")
        bound = digest or request.digest
        given: dict[str, Any] | None
        if content_file is not None:
            kind = proposal_kind(request)
            if kind is None:
                known = [each.not_by_file for each in proposal_kinds().values()]
                raise CliError(known[0] if known else "Use --input: no request has a text here.")
            given = content_of(content_file, kind)
        elif input_json is not None:
            given = parsed_input(input_json)
        else:
            given = edited_in_editor(request)
            if given is None:
                print(f"{request.id}: nothing changed, nothing decided.", file=sys.stderr)
                return OK
        answer = DecisionRequest(Decision.EDIT, bound, given)
        if not _shown_and_confirmed(request, answer, is_sure=yes or digest is not None):
            print(f"{request.id}: nothing decided.", file=sys.stderr)
            return OK
        _record(request, answer)
        return OK


@approvals.command("decide")
@click.argument("request_id", metavar="REQUEST")
@click.argument("decision", type=click.Choice(DECISIONS))
@persist_option
@click.option(
    "--reason",
    default="",
    help="Reason for the agent. With `respond`, the result, which is required.",
)
@_input
@_digest
@_yes
def decide(request_id: str, decision: str, input_json: str | None, **arguments: Any) -> int:
    """Decide a request: one command for all decisions.

    DECISION is approve, edit, reject or respond. Only this command can respond: the agent receives
    the text of --reason as the result, instead of the call.
    """
    if (decision == "edit") != (input_json is not None):
        raise click.UsageError("`edit` requires --input JSON, and --input requires `edit`.")
    return _decide(decision, request_ids=[request_id], input_json=input_json, **arguments)


def _decide(
    decision: str,
    *,
    request_ids: Sequence[str],
    persist: Path | None,
    digest: str | None,
    reason: str = "",
    yes: bool = False,
    always: dict[str, Any] | None = None,
    input_json: str | None = None,
) -> int:
    """Give the same answer to each request, bound to the request as it was read.

    At a terminal, each request is shown, and an approval needs a confirmation, unless the digest or
    `yes` declares that it was reviewed. A refused decision does not stop the others; the exit code
    reports it.
    """
    if digest is not None and len(request_ids) > 1:
        raise click.UsageError("--digest requires exactly one request.")
    with database(persist):
        terms = GrantTerms(**always) if always is not None else None
        given = parsed_input(input_json) if input_json is not None else None
        # All requests are found before the first decision.
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


def _shown_and_confirmed(
    request: ApprovalRequest, answer: DecisionRequest, *, is_sure: bool
) -> bool:
    """Return whether to give the answer: a script has confirmed it, or a person at the terminal."""
    if is_sure or not sys.stdin.isatty():
        return True
    console = new_console(stderr=True)
    show_request(request, console)
    if answer.input is not None:
        show_review(review_of_edit(request, answer.input), console)
    if answer.decision == Decision.REJECT:
        return True
    return confirm(f"{answer.decision.capitalize()} this?", console)


def _record(request: ApprovalRequest, answer: DecisionRequest) -> None:
    """Decide, and print how the run continues."""
    decided = decisions.decide(request.id, answer, by=local_user())
    tool = one_line(request.tool)
    if decided.status == ApprovalStatus.PENDING:
        print(f"{tool}: approved first. A second person has to approve it, too.")
        return
    run = decided.run
    run.refresh_from_db()
    print(f"{tool}: {answer.decision}.")
    if run.status == RunStatus.WAITING:
        print("The run waits for more decisions: vel approvals list shows them.")
    elif run.executor != POOL and is_orphan(run):
        print(f"To continue the run: {again(f'runs resume {root_of(run).id}')}")
