"""What happens to a tool call before it runs: it is allowed, a person is asked, or it is denied.

The order: what proposes a change (`agents.kernel.proposals`) always asks, unless a rule denies it;
then the first rule that fits; then `interrupt_on`; then the effect: what reaches outside asks. What
is tried and shown first (`Tool.trial`) asks unless it is denied, and no grant allows it. A grant,
which turns a question into a yes, is looked at where the question would be put
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
    """Who may answer a question, how, and for how many seconds it stands."""

    allowed_decisions: tuple[str, ...] = ALL_DECISIONS
    approvals_needed: int = 1
    self_approval: bool = True
    expiry: int | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """`source` says what decided, as in `rule 2`, `interrupt_on`, `effect` or the name of a kind of
    proposals."""

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
    """The verdict of `spec` on one call. `tool_input` is what would run.

    `proposes`: it proposes a change of this kind, which the decision makes.
    `tried`: what it would do is tried and shown, and always asked about.
    `reads`: the fields of an input that the tool looks at, as far as that is known.
    `asks`: what the tool itself says of being asked about; None leaves that to its effect.
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
    """A person decides on what was shown, and on nothing else."""
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
    # A change is proposed by whatever tool, and no rule allows it: such a rule must not keep a
    # later one from denying it.
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
    """How a proposal asks: as its rule says, else its tool, else the tool of its kind."""
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
        # The second person would approve something that the first has not seen.
        decisions = tuple(word for word in decisions if word != "edit")
    return AskTerms(
        allowed_decisions=decisions or ("reject",),
        approvals_needed=needed,
        self_approval=spec.self_approval if rule.self_approval is None else rule.self_approval,
        expiry=rule.expiry or spec.approval_expiry,
    )
