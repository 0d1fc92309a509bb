"""Checks of an agent's policy before it is saved."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from agents.conditions import problem_of
from agents.kernel.proposals import ProposalKind, proposal_kinds
from agents.services.errors import InvalidRequest
from agents.spec import AgentSpec, InterruptRule, PolicyRule


def check_policy(spec: AgentSpec) -> None:
    """Raise `InvalidRequest` (code `invalid_agent`) that starts with the field's name."""
    for location, problem in _problems(spec):
        raise InvalidRequest(f"{location}: {problem}", code="invalid_agent")


def _problems(spec: AgentSpec) -> Iterable[tuple[str, str]]:
    for index, rule in enumerate(spec.approval_rules):
        location = f"approval_rules.{index}"
        wrong = problem_of(rule.when)
        if wrong is not None:
            yield f"{location}.when.{wrong[0]}", wrong[1]
        for kind in proposal_kinds().values():
            if rule.action == "allow" and _means(rule, kind):
                yield f"{location}.action", kind.no_rule
        if rule.action == "ask":
            yield from _ask_problems(f"{location}.ask", rule.ask, spec)
        elif rule.ask != InterruptRule():
            yield f"{location}.ask", 'how it is asked goes with the action "ask" only.'
    for tool, interrupt_rule in spec.interrupt_on.items():
        location = f"interrupt_on.{tool}"
        for kind in proposal_kinds().values():
            if interrupt_rule is False and tool == kind.rule:
                yield location, kind.no_rule
        if isinstance(interrupt_rule, InterruptRule):
            yield from _ask_problems(location, interrupt_rule, spec)


def _means(rule: PolicyRule, kind: ProposalKind) -> bool:
    """Return whether the rule is about proposals of this kind only."""
    return fnmatchcase(kind.rule, rule.tool) and not any(
        fnmatchcase(name, rule.tool) for name in kind.unlike
    )


def _ask_problems(
    location: str, interrupt_rule: InterruptRule, spec: AgentSpec
) -> Iterable[tuple[str, str]]:
    decisions = set(interrupt_rule.allowed_decisions)
    needed = interrupt_rule.approvals_needed or spec.approvals_needed
    if not decisions:
        yield (
            f"{location}.allowed_decisions",
            "must not be empty: choose from approve, edit, reject.",
        )
    elif needed > 1 and "edit" in decisions and "approve" not in decisions:
        yield (
            f"{location}.allowed_decisions",
            "with two approvers nobody may edit, since the second would approve what the first "
            "has not seen: allow approve.",
        )
