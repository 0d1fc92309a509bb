"""The policy for a tool call before it runs: allow it, ask a person, or deny it.

The order: a call that proposes a change (`agents.kernel.proposals`) always asks, unless a rule
denies it. Then the first matching rule applies, then `interrupt_on`, then the effect: external
effects ask. A call with a trial (`Tool.trial`) asks unless it is denied, and no grant allows it. A
grant allows a call that would otherwise ask; it is checked when the request would be created
(`agents.services.approvals.grants`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from agents.conditions import CallReading, holds
from agents.kernel.proposals import ProposalKind
from agents.models import Effect
from agents.spec import ALL_DECISIONS, Action, AgentSpec, InterruptRule, PolicyRule

TRIED_DECISIONS = ("approve", "reject")


@dataclass(frozen=True, slots=True)
class AskTerms:
    """The terms of a request: possible decisions, approvals, and seconds until it expires."""

    allowed_decisions: tuple[str, ...] = ALL_DECISIONS
    approvals_needed: int = 1
    self_approval: bool = True
    expiry: int | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of the policy.

    `source` is the part that decided, such as `rule 2`, `interrupt_on`, `effect` or the name of a
    kind of proposals.
    """

    action: Action
    source: str
    reason: str = ""
    terms: AskTerms = field(default_factory=AskTerms)


def judge(
    spec: AgentSpec,
    tool: str,
    effect: str,
    tool_input: Any,
    *,
    proposes: ProposalKind | None = None,
    tried: bool = False,
    reads: frozenset[str] | None = None,
    asks: bool | None = None,
) -> Verdict:
    """Return the verdict of `spec` for one call. `tool_input` is the input that would run.

    Args:
        proposes: The kind of change that the call proposes, if any. A person always decides about
            it, unless a rule denies it. An approval applies the change.
        tried: The call has a trial, whose result people see. It never runs without a request.
        reads: The fields of the input that the tool uses, if known.
        asks: Whether the tool itself requires an approval request. None: its effect decides.
    """
    found = _first_rule(spec, tool, tool_input, reads, proposes)
    if found is not None and found[1].action == "deny":
        return Verdict("deny", f"rule {found[0]}", found[1].reason)
    if proposes is not None:
        rule = found[1] if found is not None and found[1].action == "ask" else None
        reason = rule.reason if rule else ""
        terms = _terms(spec, _asks(spec, tool, rule, proposes), proposes)
        return Verdict("ask", proposes.name, reason, terms)
    if found is not None:
        number, rule = found
        verdict = Verdict(rule.action, f"rule {number}", rule.reason, _terms(spec, rule.ask))
    else:
        verdict = _without_rules(spec, tool, effect, asks)
    return _as_tried(verdict) if tried else verdict


def _as_tried(verdict: Verdict) -> Verdict:
    """Limit the decisions: a person decides only on the displayed result of the trial."""
    words = verdict.terms.allowed_decisions
    decisions = tuple(word for word in words if word in TRIED_DECISIONS) or ("reject",)
    source = verdict.source if verdict.action == "ask" else "trial"
    terms = replace(verdict.terms, allowed_decisions=decisions)
    return Verdict("ask", source, verdict.reason if verdict.action == "ask" else "", terms)


def _first_rule(
    spec: AgentSpec,
    tool: str,
    tool_input: Any,
    reads: frozenset[str] | None,
    proposes: ProposalKind | None,
) -> tuple[int, PolicyRule] | None:
    # Any tool can propose a change, and no rule can allow it. This rule must not stop a later rule
    # from denying it.
    reading = CallReading(tool_input)
    names = dict.fromkeys((tool,) if proposes is None else (tool, proposes.rule))
    for number, rule in enumerate(spec.approval_rules, start=1):
        if proposes is not None and rule.action == "allow":
            continue
        for name in names:
            if fnmatchcase(name, rule.tool) and holds(
                rule.when,
                name,
                tool_input,
                permits=rule.action == "allow",
                sandbox=spec.sandbox,
                reads=reads,
                reading=reading,
            ):
                return number, rule
    return None


def _asks(
    spec: AgentSpec, tool: str, rule: PolicyRule | None, proposes: ProposalKind
) -> InterruptRule | None:
    """Return the terms of a proposal: from its rule, its tool, or the tool of its kind."""
    if rule is not None:
        return rule.ask
    for name in (tool, proposes.rule):
        asked = spec.interrupt_on.get(name)
        if isinstance(asked, InterruptRule):
            return asked
    return None


def _without_rules(spec: AgentSpec, tool: str, effect: str, asks: bool | None) -> Verdict:
    asked = spec.interrupt_on.get(tool)
    if asked is None:
        source = "effect" if asks is None else "tool"
        action: Action = "ask" if (effect == Effect.EXTERNAL if asks is None else asks) else "allow"
        return Verdict(action, source, terms=_terms(spec, None))
    rule = asked if isinstance(asked, InterruptRule) else None
    return Verdict("allow" if asked is False else "ask", "interrupt_on", terms=_terms(spec, rule))


def _terms(
    spec: AgentSpec, rule: InterruptRule | None, proposes: ProposalKind | None = None
) -> AskTerms:
    rule = rule or InterruptRule()
    needed = rule.approvals_needed or spec.approvals_needed
    decisions: tuple[str, ...] = rule.allowed_decisions
    if proposes is not None:
        decisions = tuple(word for word in decisions if word in proposes.decisions)
    if needed > 1:
        # The second person would approve an input that the first has not seen.
        decisions = tuple(word for word in decisions if word != "edit")
    return AskTerms(
        allowed_decisions=decisions or ("reject",),
        approvals_needed=needed,
        self_approval=spec.self_approval if rule.self_approval is None else rule.self_approval,
        expiry=rule.expiry or spec.approval_expiry,
    )
