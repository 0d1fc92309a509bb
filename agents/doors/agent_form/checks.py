"""Validation of an agent's approval fields, with errors that name the rule or key."""

from __future__ import annotations

import json
import re
from typing import Any

from django.core.exceptions import ValidationError

from agents.spec import InterruptRule, PolicyRule
from agents.states import Decision

_TOOL_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,200}")
_KEYS = tuple(InterruptRule.model_fields)
_RULE = (
    'true (ask), false (never ask) or {"allowed_decisions": ["approve", "reject"]} '
    f"with some of {', '.join(Decision.values)}, and optionally approvals_needed (1 or 2), "
    "self_approval (true or false) and expiry (seconds)"
)


def check_tool_name(name: object) -> None:
    if not isinstance(name, str) or not _TOOL_NAME.fullmatch(name):
        raise ValidationError(
            f"{_json(name)} is not the name of a tool: write it in quotes, as the agent calls it."
        )


def check_interrupt_on(rules: object) -> dict[str, Any]:
    """Return `interrupt_on` as entered: tool names, each with a boolean or a rule.

    Raises `ValidationError`.
    """
    if not isinstance(rules, dict):
        raise ValidationError('Give an object of tool names, as {"execute": true}.')
    for name, rule in rules.items():
        check_tool_name(name)
        if not isinstance(rule, bool):
            _check_how(name, rule)
    return rules


def check_rules(rules: object) -> list[dict[str, Any]]:
    """Return the rules in `approval_rules` if their form is valid. Raises `ValidationError`.

    `build_spec` checks their values.
    """
    if not isinstance(rules, list):
        raise ValidationError('Give a list of rules, as [{"tool": "execute", "action": "ask"}].')
    problems = [
        f"{_place(number)}: {problem}"
        for number, rule in enumerate(rules)
        if (problem := _rule_problem(rule))
    ]
    if problems:
        raise ValidationError(problems)
    return rules


def at_its_field(message: str) -> tuple[str, str]:
    """Split a message of `build_spec` into the field and the rest of the message.

    Example of a message: `approval_rules.2.when.command: …`. Rules and entries count from 1, as in
    the reason of a request. The field is "" if the message does not name one.
    """
    location, _, reason = message.partition(": ")
    if not reason or " " in location:
        return "", message
    field, *parts = location.split(".")
    if parts and parts[0].isdecimal():
        number = int(parts[0])
        parts[0] = _place(number) if field == "approval_rules" else f"entry {number + 1}"
    where = ", ".join(filter(None, [parts[0] if parts else "", ".".join(parts[1:])]))
    return field, f"{where}: {reason}" if where else reason


def _place(number: int) -> str:
    return f"rule {number + 1}"


def _rule_problem(rule: object) -> str:
    if not isinstance(rule, dict):
        return f"{_json(rule)} is no object with “tool” and “action”."
    unknown = [str(name) for name in rule if name not in PolicyRule.model_fields]
    if unknown:
        known = ", ".join(PolicyRule.model_fields)
        return f"there is no {', '.join(unknown)} in a rule; it may have {known}."
    missing = [name for name in ("tool", "action") if name not in rule]
    return f"it lacks {' and '.join(missing)}." if missing else ""


def _check_how(tool: str, rule: object) -> None:
    if not isinstance(rule, dict) or set(rule) - set(_KEYS):
        raise ValidationError(f"The rule of {tool} is {_json(rule)}; it may be {_RULE}.")
    decisions = rule.get("allowed_decisions", Decision.values)
    if not isinstance(decisions, list) or not decisions:
        raise ValidationError(
            f"allowed_decisions of {tool} must be a list that is not empty: "
            f"choose from {', '.join(Decision.values)}."
        )
    unknown = [word for word in decisions if word not in Decision.values]
    if unknown:
        raise ValidationError(
            f"allowed_decisions of {tool} has {', '.join(map(str, unknown))}: "
            f"choose from {', '.join(Decision.values)}."
        )
    needed, expiry = rule.get("approvals_needed"), rule.get("expiry")
    if needed is not None and (isinstance(needed, bool) or needed not in (1, 2)):
        raise ValidationError(f"approvals_needed of {tool} is {_json(needed)}: give 1 or 2.")
    if not isinstance(rule.get("self_approval"), bool | None):
        raise ValidationError(f"self_approval of {tool} must be true or false.")
    if expiry is not None and (type(expiry) is not int or expiry < 1):
        raise ValidationError(f"expiry of {tool} is {_json(expiry)}: give whole seconds.")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
