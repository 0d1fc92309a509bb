"""Grants: create one with an approval, use it, and revoke it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from agents.call_patterns import commands
from agents.call_patterns.paths import named_paths
from agents.conditions import CallReading, holds, problem_of, sha256_of
from agents.kernel.proposals import proposal_kind
from agents.models import ApprovalGrant, ApprovalKind, ApprovalRequest, Effect, Run
from agents.policy import AskTerms
from agents.selectors.visible import grants_for, is_approver
from agents.services.audit import record
from agents.services.errors import Conflict, InvalidRequest, NotAllowed, NotFound
from agents.spec import AgentSpec, CallCondition

GrantMatch = Literal["input", "command", "path", "tool"]
GrantState = Literal["good", "revoked", "expired", "used_up", "giver_gone"]

MAX_DAYS = 90
MAX_USES = 10_000

_UNRELATED_COMMANDS = ("true", "rm -r build", "curl -T notes.md https://example.org/")
_UNRELATED_PATHS = ("/a", "/sandbox/shared/b/c", "/memory/d.md")


@dataclass(frozen=True, slots=True)
class GrantTerms:
    """The terms of "always allow this".

    `match`: `input`, exactly this input; `command`, commands that match the expression `pattern`;
    `path`, files that match `pattern`; `tool`, every call of the tool. Without a pattern exactly
    this command or path matches. A grant covers the runs of the run's owner, with `for_everybody`
    those of all users, and with `thread_only` only this conversation.
    """

    match: GrantMatch = "input"
    pattern: str = ""
    for_everybody: bool = False
    thread_only: bool = False
    days: int = 7
    max_uses: int = 100
    reason: str = ""


def give_grant(
    request: ApprovalRequest, run: Run, terms: GrantTerms, *, by: AbstractBaseUser
) -> ApprovalGrant:
    """Create a grant in the transaction that approves `request`.

    The caller has locked the run and the request. Raises `InvalidRequest` and `NotAllowed`: then
    the request is not approved either.
    """
    _check_request(request, run, by)
    _check_numbers(terms)
    agent_id = run.agent_version.agent_id
    approver = is_approver(by, agent_id)
    if terms.for_everybody and not approver:
        raise NotAllowed("Only approvers of this agent can allow a call for all users.")
    spec = AgentSpec.model_validate(run.spec)
    condition = _condition(request, terms, spec)
    if not approver and _reaches_outside(request) and _fits_anything(request.tool, condition):
        raise NotAllowed(
            f"{request.tool} has external effects. Only approvers of this agent can allow all "
            "calls of it. Allow specific calls."
        )
    grant = ApprovalGrant.objects.create(
        agent_id=agent_id,
        tool=request.tool,
        condition=condition.model_dump(exclude_none=True),
        owner_id=None if terms.for_everybody else run.owner_id,
        thread_id=run.thread_id if terms.thread_only else None,
        reason=terms.reason,
        max_uses=terms.max_uses,
        expires_at=timezone.now() + timedelta(days=terms.days),
        request=request,
        created_by_id=by.pk,
    )
    record(
        "grant.given",
        grant,
        name=_name(grant),
        by=by,
        changes={
            "condition": (None, grant.condition),
            "covers_everybody": (None, terms.for_everybody),
            "thread": (None, grant.thread_id),
            "max_uses": (None, grant.max_uses),
            "expires_at": (None, grant.expires_at),
        },
        note=terms.reason,
    )
    return grant


def _name(grant: ApprovalGrant) -> str:
    return f"{grant.tool} for {grant.agent.slug}"


def _check_request(request: ApprovalRequest, run: Run, by: AbstractBaseUser) -> None:
    if (kind := proposal_kind(request)) is not None:
        raise InvalidRequest(kind.no_grant)
    if request.kind != ApprovalKind.TOOL or request.tool_call is None:
        raise InvalidRequest("Only tool calls can be allowed by a grant.")
    if request.preview is not None:
        raise InvalidRequest(
            "Writes to a database always require approval and cannot be allowed by a grant."
        )
    if request.approvals_needed > 1:
        raise InvalidRequest("Calls that require two approvers cannot be allowed by a grant.")
    if not request.self_approval and run.owner_id == by.pk:
        raise NotAllowed(
            "This agent does not allow you to approve calls of your own runs. Another person must "
            "decide."
        )


def _check_numbers(terms: GrantTerms) -> None:
    if not 1 <= terms.days <= MAX_DAYS:
        raise InvalidRequest(f"`days` must be 1 to {MAX_DAYS}.")
    if not 1 <= terms.max_uses <= MAX_USES:
        raise InvalidRequest(f"`max_uses` must be 1 to {MAX_USES}.")
    if terms.pattern and terms.match not in ("command", "path"):
        raise InvalidRequest("`pattern` goes with `match` command or path only.")


def _condition(request: ApprovalRequest, terms: GrantTerms, spec: AgentSpec) -> CallCondition:
    """Return the condition of the grant. It must cover the call that is approved."""
    if terms.match == "tool":
        return CallCondition()
    if terms.match == "input":
        return CallCondition(input_sha256=sha256_of(request.input))
    if terms.match not in ("command", "path"):
        raise InvalidRequest("`match` must be input, command, path or tool.")
    pattern = terms.pattern or _exactly_this(request, terms.match)
    limit = 2000 if terms.match == "command" else 1000
    if len(pattern) > limit:
        raise InvalidRequest(f"`pattern` is longer than {limit} characters: allow this input.")
    condition = CallCondition.model_validate({terms.match: pattern})
    problem = problem_of(condition)
    if problem is not None:
        raise InvalidRequest(f"`pattern`: {problem[1]}")
    if not holds(condition, request.tool, request.input, permits=True, sandbox=spec.sandbox):
        raise InvalidRequest(
            f"The pattern does not fit the call that you approve. A {terms.match} must fit as a "
            "whole, and a pattern never fits a command with shell operators such as ; | & > $ ( )."
        )
    return condition


def _exactly_this(request: ApprovalRequest, match: str) -> str:
    if match == "command":
        program = request.input.get("command", request.input.get("code"))
        if not isinstance(program, str) or not program:
            raise InvalidRequest(f"{request.tool} has no command: allow this input instead.")
        return commands.exactly(program)
    named = named_paths(request.tool, request.input)
    if len(set(named)) != 1 or not named[0] or "*" in named[0]:
        raise InvalidRequest(f"This call of {request.tool} names no one path: give `pattern`.")
    return named[0]


def _reaches_outside(request: ApprovalRequest) -> bool:
    assert request.tool_call is not None
    return request.tool_call.effect == Effect.EXTERNAL


def _fits_anything(tool: str, condition: CallCondition) -> bool:
    """Return whether a condition is no limit: it matches unrelated commands or paths."""
    if condition.command is not None:
        inputs = ({"command": text} for text in _UNRELATED_COMMANDS)
        return all(holds(condition, tool, each, permits=True) for each in inputs)
    if condition.path is not None:
        inputs = ({"path": path} for path in _UNRELATED_PATHS)
        return all(holds(condition, tool, each, permits=True) for each in inputs)
    return condition == CallCondition()


def find_grant(
    run: Run,
    tool: str,
    tool_input: Any,
    terms: AskTerms,
    reads: frozenset[str] | None = None,
) -> ApprovalGrant | None:
    """Return a valid grant that lets this call run without approval, if there is one.

    `terms` are those of the request that would be created. If they require two people, no grant
    applies. If they require another person than the run's owner, grants that the owner gave do not
    apply. `reads` is as in `agents.conditions.holds`.
    """
    if terms.approvals_needed > 1:
        return None
    found = good_grants(ApprovalGrant.objects.all()).filter(
        Q(owner=None) | Q(owner=run.owner_id),
        Q(thread=None) | Q(thread=run.thread_id),
        agent=run.agent_version.agent_id,
        tool=tool,
    )
    if not terms.self_approval:
        found = found.exclude(created_by=run.owner_id)
    sandbox = bool(run.spec.get("sandbox", True))
    reading = CallReading(tool_input)
    for grant in found.order_by("created_at", "pk"):
        condition = CallCondition.model_validate(grant.condition)
        if holds(
            condition,
            tool,
            tool_input,
            permits=True,
            sandbox=sandbox,
            reads=reads,
            reading=reading,
        ):
            return grant
    return None


def use_grant(grant_id: str) -> bool:
    """Count one use, in the transaction that starts the call. Returns False for an invalid grant.

    This is one conditional UPDATE, so two processes cannot both take the last use.
    """
    good = ApprovalGrant.objects.filter(_good(), pk=grant_id)
    return good.update(uses=F("uses") + 1, last_used_at=timezone.now()) == 1


def good_grants(grants: QuerySet[ApprovalGrant]) -> QuerySet[ApprovalGrant]:
    """Return the grants that still let calls run."""
    return grants.filter(_good(), created_by__is_active=True)


def _good() -> Q:
    return Q(revoked_at=None, expires_at__gt=timezone.now(), uses__lt=F("max_uses"))


@transaction.atomic
def revoke_grant(grant_id: str, *, by: AbstractBaseUser) -> ApprovalGrant:
    """Revoke a grant immediately: calls that have not started need approval again.

    Raises `NotFound` (no such grant that `by` may see), `NotAllowed` (`by` is not its creator, an
    approver of the agent or the agent's owner), `Conflict` (revoked already).
    """
    if not grants_for(by).filter(pk=grant_id).exists():
        raise NotFound(f"There is no grant {grant_id!r} that you may see.")
    grant = ApprovalGrant.objects.select_for_update(no_key=True).get(pk=grant_id)
    if not may_revoke(grant, by):
        raise NotAllowed(
            "Only the user who gave the grant, an approver or the agent's owner can revoke it."
        )
    if grant.revoked_at is not None:
        raise Conflict("The grant is revoked already.", code="stale")
    grant.revoked_at = timezone.now()
    grant.revoked_by_id = by.pk
    grant.save(update_fields=["revoked_at", "revoked_by"])
    record("grant.revoked", grant, name=_name(grant), by=by)
    return grant


def grant_state(grant: ApprovalGrant) -> GrantState:
    """Return whether `grant` is valid, and if not, why. `giver_gone`: its creator is inactive."""
    if grant.revoked_at is not None:
        return "revoked"
    if grant.expires_at <= timezone.now():
        return "expired"
    if grant.uses >= grant.max_uses:
        return "used_up"
    return "good" if grant.created_by is not None and grant.created_by.is_active else "giver_gone"


def may_revoke(grant: ApprovalGrant, user: AbstractBaseUser) -> bool:
    """Return whether `user` may revoke `grant`."""
    return user.pk in (grant.created_by_id, grant.agent.owner_id) or is_approver(
        user, grant.agent_id
    )
