"""What happens to a tool call before it runs: it is allowed, a person is asked, or it is denied.

The order: an edit of the memory always asks, unless a rule denies it; then the first rule that
fits; then `interrupt_on`; then the effect: what reaches outside asks. What is tried first, as a
statement that writes to a database, asks unless it is denied, and no grant allows it. A grant,
which turns a question into a yes, is looked at where the question would be put
(`agents.services.grants`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from agents.conditions import CallReading, holds
from agents.models import Effect
from agents.spec import ALL_DECISIONS, Action, AgentSpec, InterruptRule, PolicyRule

MEMORY_DECISIONS = ("approve", "edit", "reject")
TRIED_DECISIONS = ("approve", "reject")
MEMORY_TOOL = "write_memory"


@dataclass(frozen=True, slots=True)
class AskTerms:
    """Who may answer a question, how, and for how many seconds it stands."""

    allowed_decisions: tuple[str, ...] = ALL_DECISIONS
    approvals_needed: int = 1
    self_approval: bool = True
    expiry: int | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """`source` says what decided, as in `rule 2`, `interrupt_on`, `effect` or `memory`."""

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
    edits_memory: bool = False,
    tried: bool = False,
    reads: frozenset[str] | None = None,
    asks: bool | None = None,
) -> Verdict:
    """The verdict of `spec` on one call. `tool_input` is what would run.

    `tried`: what it would do is tried and shown, and always asked about.
    `reads`: the fields of an input that the tool looks at, as far as that is known.
    `asks`: what the tool itself says of being asked about; None leaves that to its effect.
    """
    found = _first_rule(spec, tool, tool_input, reads, edits_memory)
    if found is not None and found[1].action == "deny":
        return Verdict("deny", f"rule {found[0]}", found[1].reason)
    if edits_memory:
        rule = found[1] if found is not None and found[1].action == "ask" else None
        reason = rule.reason if rule else ""
        return Verdict("ask", "memory", reason, _terms(spec, _asks(spec, tool, rule), True))
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
    spec: AgentSpec, tool: str, tool_input: Any, reads: frozenset[str] | None, edits_memory: bool
) -> tuple[int, PolicyRule] | None:
    # An edit of the memory is one by whatever tool, and no rule allows it: such a rule must not
    # keep a later one from denying it.
    reading = CallReading(tool_input)
    names = dict.fromkeys((tool, MEMORY_TOOL) if edits_memory else (tool,))
    for number, rule in enumerate(spec.approval_rules, start=1):
        if edits_memory and rule.action == "allow":
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


def _asks(spec: AgentSpec, tool: str, rule: PolicyRule | None) -> InterruptRule | None:
    """How an edit of the memory asks: as its rule says, else its tool, else `write_memory`."""
    if rule is not None:
        return rule.ask
    for name in (tool, MEMORY_TOOL):
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


def _terms(spec: AgentSpec, rule: InterruptRule | None, edits_memory: bool = False) -> AskTerms:
    rule = rule or InterruptRule()
    needed = rule.approvals_needed or spec.approvals_needed
    decisions: tuple[str, ...] = rule.allowed_decisions
    if edits_memory:
        # Nobody can give the result of an edit that was not made.
        decisions = tuple(word for word in decisions if word in MEMORY_DECISIONS)
    if needed > 1:
        # The second person would approve something that the first has not seen.
        decisions = tuple(word for word in decisions if word != "edit")
    return AskTerms(
        allowed_decisions=decisions or ("reject",),
        approvals_needed=needed,
        self_approval=spec.self_approval if rule.self_approval is None else rule.self_approval,
        expiry=rule.expiry or spec.approval_expiry,
    )
