"""Questions about one request for approval to the person at the terminal."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click
from click.exceptions import ClickException
from rich.console import Console
from rich.text import Text

from agents.doors.cli.console import show_review
from agents.doors.cli.errors import CliError
from agents.doors.cli.questions import forget_typed_ahead, read
from agents.features.approvals.cli.shown_request import show_request
from agents.features.approvals.edited_review import review_of_edit
from agents.features.approvals.pending_responses import PendingResponses
from agents.hidden_text import escaped_text, unescaped_text
from agents.kernel.proposals import ProposalKind, proposal_kind, run_request_kind
from agents.models import ApprovalKind, ApprovalRequest
from agents.services.approvals.decisions import DecisionRequest
from agents.services.approvals.grants import GrantMatch, GrantTerms
from agents.states import Decision

_KEYS = {
    "y": Decision.APPROVE,
    "n": Decision.REJECT,
    "e": Decision.EDIT,
    "r": Decision.RESPOND,
}
_WORDS = {
    "y": "y(es)",
    "n": "n(o)",
    "e": "e(dit)",
    "r": "r(espond instead)",
    "a": "a(lways)",
}
ALWAYS = "a"
_MATCHES: dict[str, GrantMatch] = {"i": "input", "c": "command", "p": "path", "t": "tool"}


def ask(
    request: ApprovalRequest, answers: PendingResponses, console: Console
) -> DecisionRequest | None:
    """Show the whole request and read one of the decisions that `answers` offers.

    Returns None if the request stays pending: after Ctrl-D, or if no answer is possible, with a
    message. The decision is bound to the digest of the request. An empty line, or keys that were
    pressed before the request appeared, approve nothing.
    """
    show_request(request, console)
    if not show_refused(answers, console):
        return None
    keys = [key for key, decision in _KEYS.items() if decision in answers.offered]
    if "y" in keys and request.kind == ApprovalKind.TOOL and request.approvals_needed == 1:
        keys.append(ALWAYS)
    question = f"Run it? [{' / '.join(_WORDS[key] for key in keys)}] "
    question = question.replace("Run it", _question(request), 1)
    forget_typed_ahead()
    try:
        while True:
            key = read(question, console).strip().lower()[:1]
            if key in keys:
                answer = _answer(key, request, console)
                if answer is not None:
                    return answer
    except EOFError:
        console.print()
        return None


def show_refused(answers: PendingResponses, console: Console) -> bool:
    """Show the answers that this person cannot give, with reasons.

    Return whether any answer is possible.
    """
    reasons = [answers.closed] if answers.closed else []
    reasons += [f"{', '.join(which)}: {reason}" for reason, which in answers.refused.items()]
    for reason in reasons:
        console.print(Text(reason, style="yellow"))
    return bool(answers.offered)


def _answer(key: str, request: ApprovalRequest, console: Console) -> DecisionRequest | None:
    """Ask for the rest of an answer. Return None to repeat the question."""
    decision = _KEYS[key] if key != ALWAYS else Decision.APPROVE
    reason = ""
    given = None
    always = None
    if key == ALWAYS:
        always = _ask_grant_terms(console)
        if always is None:
            return None
    elif decision == Decision.REJECT:
        reason = read("Why not? (told to the agent; may be empty) ", console).strip()
    elif decision == Decision.RESPOND:
        reason = read("Result to give it instead: ", console)
        if not reason.strip():
            return None
    elif decision == Decision.EDIT:
        given = _edit(request, console)
        if given is None:
            return None
        show_review(review_of_edit(request, given), console)
        what = _question(request).partition(" ")[0]
        if read(f"{what} this instead? [y/n] ", console).strip().lower() != "y":
            return None
    return DecisionRequest(decision, request.digest, given, reason, always)


def _question(request: ApprovalRequest) -> str:
    kind = proposal_kind(request) or run_request_kind(request)
    return kind.question if kind is not None else "Run it"


def _ask_grant_terms(console: Console) -> GrantTerms | None:
    """Ask which calls need no approval for a week. Return None to repeat the question."""
    console.print(
        Text("Allow for 7 days, 100 times: i(nput), this very input; c(ommand) or p(ath)")
    )
    console.print(Text("that fits a pattern; t(ool), every call. Anything else goes back."))
    match = _MATCHES.get(read("Which? [i / c / p / t] ", console).strip().lower()[:1])
    if match is None:
        return None
    pattern = ""
    if match in ("command", "path"):
        kind = "a regular expression" if match == "command" else "with *"
        pattern = read(f"Pattern ({kind}; empty: exactly this {match}) ", console).strip()
    return GrantTerms(match, pattern)


def _edit(request: ApprovalRequest, console: Console) -> dict[str, Any] | None:
    """Return the input that the person has edited in the editor, or typed as JSON."""
    try:
        if has_editor():
            given = edited_in_editor(request)
        else:
            given = parsed_input(read("New input as JSON: ", console))
    except CliError as error:
        console.print(Text(f"Nothing changed: {error.message}", style="red"))
        return None
    if given is None:
        console.print(Text("Nothing changed.", style="red"))
    return given


def has_editor() -> bool:
    return bool(os.environ.get("VISUAL") or os.environ.get("EDITOR"))


def parsed_input(text: str) -> dict[str, Any]:
    """Return JSON that a person has typed. Raises `CliError` unless it is a JSON object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CliError(f"The input is not JSON: {error}.") from None
    if not isinstance(value, dict):
        raise CliError("The input must be a JSON object: the complete input that runs instead.")
    return value


def content_of(path: Path, kind: ProposalKind) -> dict[str, Any]:
    """Return the text of a file as the edited input of a proposal.

    Raises `CliError` if it is too large or not UTF-8.
    """
    with path.open("rb") as file:
        data = file.read(kind.most_bytes + 1)
    if len(data) > kind.most_bytes:
        raise CliError(f"{path} is larger than {kind.most_bytes:,} bytes, the limit for a file.")
    try:
        return {"content": data.decode()}
    except UnicodeDecodeError:
        raise CliError(f"{path} is not UTF-8 text.") from None


def edited_in_editor(request: ApprovalRequest) -> dict[str, Any] | None:
    r"""Return the input after $VISUAL or $EDITOR; None if the person left without saving.

    A proposal is edited as its text, with hidden characters as escapes (`\u{202e}`); other input as
    JSON. Raises `CliError` if the editor fails, or the text is no JSON object.
    """
    kind = proposal_kind(request)
    if kind is not None:
        before = escaped_text(kind.text(request))
        suffix = Path(kind.file_name(request)).suffix or ".md"
    elif (about_run := run_request_kind(request)) is not None:
        before, suffix = json.dumps(about_run.editable(request), indent=2), ".json"
    else:
        before, suffix = json.dumps(request.input, indent=2, ensure_ascii=True), ".json"
    try:
        after = click.edit(before, extension=suffix)
    except ClickException as error:
        raise CliError(f"The editor failed: {error.message}") from None
    if after is None:
        return None
    return {"content": unescaped_text(after)} if kind is not None else parsed_input(after)
