#!/usr/bin/env python3
"""Evaluate a request against a policy and write a decision record.

All rules that apply count, and the strictest outcome wins. If no rule applies, or the request lacks
a value that a rule needs, the outcome is escalate. No request is approved by default.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from datetime import UTC, datetime
from typing import Any

from conditions import Unclear, look_up
from outcome import UNREADABLE, WRONG_CALL, Stop, deliver, input_file, run
from policy import OUTCOMES, RISKS, Policy, Rule, read_policy
from strict_json import AGAIN, given_again, read_json

_FINAL = {"approve": "approved", "deny": "denied"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policy", required=True, help="a .json or .md file")
    parser.add_argument("--request", required=True, help="a .json file")
    parser.add_argument("--decided-at", help="such as 2024-05-01T10:00:00Z; default: now")
    parser.add_argument("--output", help="write the record here instead of to stdout")
    given = parser.parse_args()
    policy = read_policy(given.policy)
    request = _read_request(given.request)
    record = make_record(policy, request, _moment(given.decided_at))
    text = json.dumps(record, ensure_ascii=False, indent=2) + "\n"
    deliver(text, given.output, input_file(given.policy), input_file(given.request))
    return 0


def make_record(policy: Policy, request: dict[str, Any], decided_at: str) -> dict[str, Any]:
    """Return the decision record of a request. The same arguments give the same record."""
    applying, factors, unclear = _apply(policy, request)
    unclear += [f"{name} is {AGAIN}" for name in given_again(request)]
    missing = [name for name in policy.required if not look_up(request, name)[0]]
    outcome = max((rule.outcome for rule in applying), key=OUTCOMES.index, default="escalate")
    # Escalate, because a rule that cannot be evaluated may be stricter.
    if outcome != "deny" and (missing or unclear):
        outcome = "escalate"
    counted = [rule for rule in applying if rule.outcome in ("needs_approval", outcome)]
    approvers = list(dict.fromkeys(name for rule in counted for name in rule.approvers))
    requester = str(request.get("requester", "")).strip().casefold()
    flags = []
    if requester and requester in {each.casefold() for each in approvers}:
        flags.append("The requester is among the approvers: a conflict of interest.")
        outcome = "deny" if outcome == "deny" else "escalate"
    risk = max((rule.risk for rule in applying), key=RISKS.index, default="high")
    if missing or unclear or flags:
        risk = "high"
    rationale = _rationale(outcome, applying, missing, unclear, flags)
    digest = hashlib.sha256(
        json.dumps([policy.sha256, request, decided_at], sort_keys=True).encode()
    ).hexdigest()
    return {
        "schema": "vel-decision-record/1",
        "decision_id": f"DEC-{decided_at[:10].replace('-', '')}-{digest[:8]}",
        "type": str(request.get("type") or policy.type),
        "decided_at": decided_at,
        "policy": {"name": policy.name, "version": policy.version, "sha256": policy.sha256},
        "request": request,
        "evaluation": {
            "rules_that_apply": [rule.name for rule in applying],
            "factors": factors,
            "missing_fields": missing,
            "unclear": unclear,
            "flags": flags,
            "risk": risk,
        },
        "decision": {
            "outcome": _FINAL.get(outcome, outcome),
            "approvers": [] if outcome in ("approve", "deny") else approvers,
            "rationale": rationale,
            "next_steps": _next_steps(outcome, approvers, missing),
        },
    }


def _apply(policy: Policy, request: dict[str, Any]) -> tuple[list[Rule], list[str], list[str]]:
    """Return (rules that apply, one finding for each rule, doubts)."""
    applying, factors, unclear = [], [], []
    for rule in policy.rules:
        verdict, doubts = _verdict(rule, request)
        unclear += doubts
        if verdict:
            applying.append(rule)
        words = "is unclear" if doubts else "applies" if verdict else "does not apply"
        factors.append(f"{rule.name}: {rule.condition}: {words}")
    return applying, factors, list(dict.fromkeys(unclear))


def _verdict(rule: Rule, request: dict[str, Any]) -> tuple[bool, list[str]]:
    """Return (whether the rule applies, doubts). One false comparison decides, even with doubts."""
    doubts = []
    for comparison in rule.comparisons:
        try:
            if not comparison.holds(request):
                return False, []
        except Unclear as problem:
            doubts.append(f"{rule.name}: {problem}")
    return not doubts, doubts


def _rationale(
    outcome: str, applying: list[Rule], missing: list[str], unclear: list[str], flags: list[str]
) -> str:
    deciding = [rule for rule in applying if rule.outcome == outcome]
    parts = [
        f"{rule.name} applies ({rule.condition})" + (f": {rule.reason}" if rule.reason else "")
        for rule in deciding
    ]
    if missing:
        parts.append(f"the request lacks {', '.join(missing)}")
    parts += unclear + [flag.rstrip(".") for flag in flags]
    if not applying and not missing and not unclear:
        parts.append("no rule of the policy applies")
    return "; ".join(parts) + "."


def _next_steps(outcome: str, approvers: list[str], missing: list[str]) -> list[str]:
    asked = ", then ".join(approvers)
    steps = {
        "approve": ["Tell the requester. No approval is needed under this policy."],
        "deny": ["Tell the requester the reason and a contact."],
        "needs_approval": [f"Ask for approval: {asked}."],
        "escalate": [f"Escalate to {asked}." if approvers else "Escalate to the policy's owner."],
    }[outcome]
    return ([f"Ask the requester for {', '.join(missing)}."] if missing else []) + steps


def _read_request(path: str) -> dict[str, Any]:
    request = read_json(path, once=False)
    if not isinstance(request, dict):
        raise Stop(f"{path} must contain one JSON object.", UNREADABLE)
    return request


def _moment(given: str | None) -> str:
    if given is None:
        return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        moment = datetime.fromisoformat(given.replace("Z", "+00:00"))
    except ValueError:
        raise Stop(
            f"--decided-at {given} is not a time such as 2024-05-01T10:00:00Z.", WRONG_CALL
        ) from None
    if moment.tzinfo is None:
        raise Stop("--decided-at needs a time zone, such as Z at its end.", WRONG_CALL)
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


if __name__ == "__main__":
    run(main)
