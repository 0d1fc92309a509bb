"""Validation of an agent's approval fields, with errors that name the rule or key."""

from __future__ import annotations

import json
import re
from typing import Any

from django.core.exceptions import ValidationError
from django.utils.text import get_text_list
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.spec import InterruptRule, PolicyRule
from agents.states import Decision

_TOOL_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,200}")
_KEYS = tuple(InterruptRule.model_fields)
_DECISIONS = ", ".join(Decision.values)
_RULE = _(
    "The rule of %(tool)s is %(rule)s; it may be true (ask), false (never ask) or "
    '{"allowed_decisions": ["approve", "reject"]} with some of %(decisions)s, and optionally '
    "approvals_needed (1 or 2), self_approval (true or false) and expiry (seconds)."
)


def check_tool_name(name: object) -> None:
    if not isinstance(name, str) or not _TOOL_NAME.fullmatch(name):
        text = gettext(
            "%(name)s is not the name of a tool: write it in quotes, as the agent calls it."
        )
        raise ValidationError(text % {"name": _json(name)})


def check_interrupt_on(rules: object) -> dict[str, Any]:
    """Return `interrupt_on` as entered: tool names, each with a boolean or a rule.

    Raises `ValidationError`.
    """
    if not isinstance(rules, dict):
        raise ValidationError(gettext('Give an object of tool names, as {"execute": true}.'))
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
        raise ValidationError(
            gettext('Give a list of rules, as [{"tool": "execute", "action": "ask"}].')
        )
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
        parts[0] = _place(number) if field == "approval_rules" else _entry(number)
    where = ", ".join(filter(None, [parts[0] if parts else "", ".".join(parts[1:])]))
    return field, f"{where}: {reason}" if where else reason


def _place(number: int) -> str:
    return gettext("rule %(number)s") % {"number": number + 1}


def _entry(number: int) -> str:
    return gettext("entry %(number)s") % {"number": number + 1}


def _rule_problem(rule: object) -> str:
    if not isinstance(rule, dict):
        return gettext("%(rule)s is no object with “tool” and “action”.") % {"rule": _json(rule)}
    unknown = [str(name) for name in rule if name not in PolicyRule.model_fields]
    if unknown:
        known = ", ".join(PolicyRule.model_fields)
        text = gettext("there is no %(names)s in a rule; it may have %(known)s.")
        return text % {"names": ", ".join(unknown), "known": known}
    missing = [name for name in ("tool", "action") if name not in rule]
    if not missing:
        return ""
    return gettext("it lacks %(names)s.") % {"names": get_text_list(missing, gettext("and"))}


def _check_how(tool: str, rule: object) -> None:
    if not isinstance(rule, dict) or set(rule) - set(_KEYS):
        values = {"tool": tool, "rule": _json(rule), "decisions": _DECISIONS}
        raise ValidationError(_RULE % values)
    decisions = rule.get("allowed_decisions", Decision.values)
    if not isinstance(decisions, list) or not decisions:
        text = gettext(
            "allowed_decisions of %(tool)s must be a list that is not empty: choose from "
            "%(decisions)s."
        )
        raise ValidationError(text % {"tool": tool, "decisions": _DECISIONS})
    unknown = [word for word in decisions if word not in Decision.values]
    if unknown:
        text = gettext("allowed_decisions of %(tool)s has %(unknown)s: choose from %(decisions)s.")
        values = {
            "tool": tool,
            "unknown": ", ".join(map(str, unknown)),
            "decisions": _DECISIONS,
        }
        raise ValidationError(text % values)
    needed, expiry = rule.get("approvals_needed"), rule.get("expiry")
    if needed is not None and (isinstance(needed, bool) or needed not in (1, 2)):
        text = gettext("approvals_needed of %(tool)s is %(value)s: give 1 or 2.")
        raise ValidationError(text % {"tool": tool, "value": _json(needed)})
    if not isinstance(rule.get("self_approval"), bool | None):
        text = gettext("self_approval of %(tool)s must be true or false.")
        raise ValidationError(text % {"tool": tool})
    if expiry is not None and (type(expiry) is not int or expiry < 1):
        text = gettext("expiry of %(tool)s is %(value)s: give whole seconds.")
        raise ValidationError(text % {"tool": tool, "value": _json(expiry)})


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
