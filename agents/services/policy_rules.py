"""What is wrong with an agent's policy, before it is saved."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from agents.conditions import problem_of
from agents.policy import MEMORY_TOOL
from agents.services.errors import InvalidRequest
from agents.spec import AgentSpec, InterruptRule, PolicyRule

_ITS_LIKES = ("write_file", "read_memory", "list_memory")
MEMORY_ASKS = (
    "an edit of the memory always asks a person. A rule can deny it, or say how it is asked."
)


def check_policy(spec: AgentSpec) -> None:
    """Raises `InvalidRequest` (code `invalid_agent`) that begins with the field's name."""
    for place, problem in _problems(spec):
        raise InvalidRequest(f"{place}: {problem}", code="invalid_agent")


def _problems(spec: AgentSpec) -> Iterable[tuple[str, str]]:
    for index, rule in enumerate(spec.approval_rules):
        place = f"approval_rules.{index}"
        wrong = problem_of(rule.when)
        if wrong is not None:
            yield f"{place}.when.{wrong[0]}", wrong[1]
        if rule.action == "allow" and _names_memory(rule):
            yield f"{place}.action", MEMORY_ASKS
        if rule.action == "ask":
            yield from _ask_problems(f"{place}.ask", rule.ask, spec)
        elif rule.ask != InterruptRule():
            yield f"{place}.ask", 'how it is asked goes with the action "ask" only.'
    for tool, asked in spec.interrupt_on.items():
        place = f"interrupt_on.{tool}"
        if asked is False and tool == MEMORY_TOOL:
            yield place, MEMORY_ASKS
        if isinstance(asked, InterruptRule):
            yield from _ask_problems(place, asked, spec)


def _names_memory(rule: PolicyRule) -> bool:
    """Whether the rule means edits of the memory, and not these among others."""
    return fnmatchcase(MEMORY_TOOL, rule.tool) and not any(
        fnmatchcase(name, rule.tool) for name in _ITS_LIKES
    )


def _ask_problems(place: str, asked: InterruptRule, spec: AgentSpec) -> Iterable[tuple[str, str]]:
    decisions = set(asked.allowed_decisions)
    needed = asked.approvals_needed or spec.approvals_needed
    if not decisions:
        yield f"{place}.allowed_decisions", "must not be empty: choose from approve, edit, reject."
    elif needed > 1 and "edit" in decisions and "approve" not in decisions:
        yield (
            f"{place}.allowed_decisions",
            "with two approvers nobody may edit, since the second would approve what the first "
            "has not seen: allow approve.",
        )
