"""The options of "Always allow…" for a request, and the terms in the submitted form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast, get_args

from django.http import QueryDict

from agents.call_patterns.commands import exactly
from agents.conditions import holds, problem_of
from agents.hidden_text import visible
from agents.models import ApprovalKind, ApprovalRequest
from agents.review.call import PATH
from agents.services.approvals.grants import GrantMatch, GrantTerms
from agents.services.errors import InvalidRequest
from agents.spec import CallCondition
from agents.states import Decision

PATTERN_CHARACTERS = 1_000
_LARGEST = 1_000_000


@dataclass(frozen=True, slots=True)
class GrantOption:
    """One way to match calls like this one. If `pattern_label` is set, `pattern` is editable."""

    match: GrantMatch
    label: str
    pattern: str = ""
    pattern_label: str = ""


def grant_options(request: ApprovalRequest) -> Iterable[GrantOption]:
    """Yield the options. None if the service would refuse a grant for the request."""
    if (
        request.kind != ApprovalKind.TOOL
        or request.preview is not None
        or request.approvals_needed > 1
        or Decision.APPROVE not in request.allowed_decisions
    ):
        return
    yield GrantOption("input", "Exactly this input")
    arguments = request.input if isinstance(request.input, dict) else {}
    command = arguments.get("command")
    if isinstance(command, str) and _fits(request, "command", exactly(command)):
        label = "Commands that fit an expression"
        yield GrantOption("command", label, exactly(command), "Expression (RE2), all of it")
    path = next((arguments[name] for name in PATH if isinstance(arguments.get(name), str)), None)
    if path is not None and _fits(request, "path", path):
        label = "Pattern: * for any name, ** for any directories"
        yield GrantOption("path", "Files like this", path, label)
    yield GrantOption("tool", f"Any input of {visible(request.tool)}")


def _fits(request: ApprovalRequest, match: str, pattern: str) -> bool:
    """Return whether a one-line pattern of this kind can match the call."""
    if not pattern or len(pattern) > PATTERN_CHARACTERS or "\n" in pattern:
        return False
    if visible(pattern) != pattern:
        return False
    condition = CallCondition.model_validate({match: pattern})
    if problem_of(condition) is not None:
        return False
    sandbox = bool(request.run.spec.get("sandbox", True))
    return holds(condition, request.tool, request.input, permits=True, sandbox=sandbox)


def terms_of(typed: QueryDict) -> GrantTerms:
    """Return the terms in a form; the service validates them. Raises `InvalidRequest`."""
    match = cast(GrantMatch, typed.get("match", ""))
    if match not in get_args(GrantMatch):
        raise InvalidRequest("Choose what should be allowed always.")
    return GrantTerms(
        match=match,
        pattern=typed.get(f"pattern_{match}", "") if match in ("command", "path") else "",
        for_everybody=typed.get("whose") == "everybody",
        thread_only=typed.get("whose") == "thread",
        days=_number(typed.get("days", ""), "days"),
        max_uses=_number(typed.get("max_uses", ""), "uses"),
        reason=typed.get("reason", ""),
    )


def _number(text: str, what: str) -> int:
    text = text.strip()
    if not (text.isascii() and text.isdecimal() and 0 < len(text) <= len(str(_LARGEST))):
        raise InvalidRequest(f"How many {what}? Write a number.")
    return int(text)
