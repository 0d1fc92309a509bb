"""Approval requests as cards. All text on a card is safe to display.

The template `web/card.html` and `cards.js` build the same elements from it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast, get_args

from django.contrib.auth.base_user import AbstractBaseUser
from django.http import QueryDict
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext

from agents.call_patterns.commands import exactly
from agents.conditions import holds, problem_of
from agents.doors.web.ages import in_words
from agents.hidden_text import visible
from agents.kernel.proposals import (
    Background,
    ProposalKind,
    RunRequestKind,
    proposal_kind,
    run_request_kind,
)
from agents.models import ApprovalKind, ApprovalRequest
from agents.review import Review
from agents.review.call import PATH
from agents.review.json_text import TOO_LONG_TO_EDIT, size_of
from agents.selectors.queue import INPUTS, SOON, paths_of_runs, take_inputs
from agents.services.approvals.grants import GrantMatch, GrantTerms
from agents.services.approvals.request_review import review_of_request
from agents.services.approvals.rights import Rights
from agents.services.errors import InvalidRequest
from agents.spec import CallCondition
from agents.states import ApprovalStatus, Decision
from agents.web.card_parts import (
    Editor,
    Outcome,
    Source,
    approvals_of,
    editors_of,
    outcome_of,
    source_of,
    until,
)

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
    """Yield the options. There are none if the service would refuse a grant for the request."""
    if (
        request.kind != ApprovalKind.TOOL
        or request.preview is not None
        or request.approvals_needed > 1
        or Decision.APPROVE not in request.allowed_decisions
    ):
        return
    yield GrantOption("input", gettext("Exactly this input"))
    arguments = request.input if isinstance(request.input, dict) else {}
    command = arguments.get("command")
    if isinstance(command, str) and _fits(request, "command", exactly(command)):
        label = gettext("Commands that fit an expression")
        pattern_label = gettext("Expression (RE2), all of it")
        yield GrantOption("command", label, exactly(command), pattern_label)
    path = next((arguments[name] for name in PATH if isinstance(arguments.get(name), str)), None)
    if path is not None and _fits(request, "path", path):
        label = gettext("Pattern: * for any name, ** for any directories")
        yield GrantOption("path", gettext("Files like this"), path, label)
    any_input = gettext("Any input of %(tool)s") % {"tool": visible(request.tool)}
    yield GrantOption("tool", any_input)


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
        raise InvalidRequest(gettext("Choose what should be allowed always."))
    return GrantTerms(
        match=match,
        pattern=typed.get(f"pattern_{match}", "") if match in ("command", "path") else "",
        for_everybody=typed.get("whose") == "everybody",
        thread_only=typed.get("whose") == "thread",
        days=_number(typed.get("days", ""), gettext("How many days? Write a number.")),
        max_uses=_number(typed.get("max_uses", ""), gettext("How many uses? Write a number.")),
        reason=typed.get("reason", ""),
    )


def _number(text: str, problem: str) -> int:
    text = text.strip()
    if not (text.isascii() and text.isdecimal() and 0 < len(text) <= len(str(_LARGEST))):
        raise InvalidRequest(problem)
    return int(text)


OPEN_BYTES = 100_000
"""A larger request is shown closed; the person can open it."""
OPEN_BYTES_TOGETHER = 400_000
"""Limit for all open cards of a page, so that an agent cannot make the queue slow."""


@dataclass(frozen=True, slots=True)
class Card:
    """A card of one approval request.

    Times are ISO 8601. `blocked` maps each offered decision to the reason why this person cannot
    make it, or to "" if the person can. A closed card has no review and cannot be decided.
    """

    id: str
    digest: str
    kind: str
    tool: str
    is_pending: bool
    agent: str
    path: str
    owner: str
    run_url: str
    url: str
    decide_url: str
    prompt: str
    asked_at: str
    asked_ago: str
    expires_at: str
    expires_in: str
    is_expiring: bool
    approvals: str
    blocked: dict[str, str]
    refusal: str
    is_proposal: bool
    headline: str
    save_label: str
    agents_reason: str
    step: int
    sources: tuple[Source, ...]
    outcome: Outcome | None
    stamp: str = ""
    review: Review | None = None
    editors: tuple[Editor, ...] = ()
    grants: tuple[GrantOption, ...] = field(default=())

    @property
    def offers(self) -> frozenset[str]:
        """Return the decisions to show, enabled or disabled."""
        return frozenset(self.blocked) if self.review is not None else frozenset()

    @property
    def may_approve(self) -> bool:
        return self.blocked.get(Decision.APPROVE) == "" and self.review is not None

    @property
    def may_select(self) -> bool:
        return self.is_pending and self.review is not None


def cards_of(
    requests: Iterable[ApprovalRequest], person: AbstractBaseUser, *, opened: bool | None = None
) -> list[Card]:
    """Return the cards of rows of `queue_of`, in their order.

    `opened` is True for cards with a review, False for cards without. If it is None, the pending
    requests have a review, except those with large inputs.
    """
    rows = list(requests)
    paths = paths_of_runs(row.run for row in rows)
    rights = Rights(person)
    left = OPEN_BYTES_TOGETHER
    cards: list[Card] = []
    for row in rows:
        known = take_inputs(row)
        card = _closed_card(row, paths[row.run_id], rights)
        card = replace(card, stamp=_stamp(card))
        size = _size(row) if opened or "input" in known else OPEN_BYTES_TOGETHER
        fits = card.is_pending and size <= min(OPEN_BYTES, left)
        if opened or (opened is None and fits):
            left -= size
            card = _opened(card, row)
        for name in set(INPUTS) - known:
            row.__dict__.pop(name, None)  # May be megabytes.
        cards.append(card)
    return cards


def card_json(card: Card) -> dict[str, Any]:
    """Return the card as `cards.js` expects it."""
    return {**asdict(card), "may_select": card.may_select}


def _closed_card(row: ApprovalRequest, path: list[str], rights: Rights) -> Card:
    is_pending = row.status == ApprovalStatus.PENDING
    blocked: dict[str, str] = {}
    if is_pending:
        blocked = {word: rights.refusal(row, word) for word in row.allowed_decisions}
    kind, about_run = proposal_kind(row), run_request_kind(row)
    background = kind.background(row) if kind is not None else Background()
    now = timezone.now()
    return Card(
        id=row.pk,
        digest=row.digest,
        kind=row.kind,
        tool=visible(row.tool),
        is_pending=is_pending,
        agent=visible(row.run.agent_version.agent.name),
        path=visible(" › ".join(path)),
        owner=visible(row.run.owner.get_username()),
        run_url=reverse("web:run", args=[row.run_id]),
        url=reverse("web:approval", args=[row.pk]),
        decide_url=reverse("web:approval-decide", args=[row.pk]),
        prompt=visible(row.prompt),
        asked_at=row.created_at.isoformat(),
        asked_ago=in_words(now - row.created_at),
        expires_at=row.expires_at.isoformat() if row.expires_at and is_pending else "",
        expires_in=until(row.expires_at) if row.expires_at and is_pending else "",
        is_expiring=bool(is_pending and row.expires_at and row.expires_at - now < SOON),
        approvals=approvals_of(row) if is_pending else "",
        blocked=blocked,
        refusal=visible(_refusal(row, blocked, rights)),
        is_proposal=kind is not None,
        headline=str(about_run.headline) if about_run is not None else "",
        save_label=_save_label(kind or about_run),
        agents_reason=visible(background.reason),
        step=background.step,
        sources=tuple(source_of(each) for each in background.sources),
        outcome=None if is_pending else outcome_of(row),
    )


def _save_label(kind: ProposalKind | RunRequestKind | None) -> str:
    """Return the label of the button that approves with changes."""
    return str(kind.save_label) if kind is not None else gettext("Run with these changes")


def _refusal(row: ApprovalRequest, blocked: dict[str, str], rights: Rights) -> str:
    """Return why the person cannot make all offered decisions, in one or two sentences."""
    refusal = next((text for text in blocked.values() if text), "")
    if blocked.get(Decision.APPROVE) and row.first_approver_id != rights.person_id:
        return gettext("It waits for an approver. %(refusal)s") % {"refusal": refusal}
    return refusal


def _opened(card: Card, row: ApprovalRequest) -> Card:
    card = replace(card, review=review_of_request(row))
    if not card.is_pending:
        return card
    editors = tuple(editors_of(row)) if Decision.EDIT in card.blocked else ()
    if not editors and card.blocked.get(Decision.EDIT) == "":
        too_long = str(TOO_LONG_TO_EDIT)
        card = replace(
            card,
            blocked={**card.blocked, Decision.EDIT: too_long},
            refusal=card.refusal or too_long,
        )
    return replace(
        card,
        editors=editors,
        grants=tuple(grant_options(row)) if card.may_approve else (),
    )


def _size(row: ApprovalRequest) -> int:
    kind = proposal_kind(row)
    own = kind.size(row) if kind is not None else 0
    return size_of(row.input, OPEN_BYTES_TOGETHER) + own


def _stamp(card: Card) -> str:
    """Return a stamp that changes when a page must render the card again."""
    seen = json.dumps([card.approvals, card.blocked, card.is_pending, asdict(card)["outcome"]])
    return hashlib.sha256(seen.encode()).hexdigest()[:12]
