"""decision-workflow: the result of a policy for a request, and that doubt never approves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.skills_app.builtin.desk import Desk

pytestmark = pytest.mark.bubblewrap

EVALUATE, CHECK = "decision-workflow/evaluate_request.py", "decision-workflow/check_record.py"
ASSETS = "/sandbox/skills/decision-workflow/assets"
POLICY = f"{ASSETS}/example-policy.json"
AT = ("--decided-at", "2024-05-01T12:00:00+02:00")
REQUEST = {"requester": "A", "currency": "USD", "description": "x", "category": "software"}


def decide(desk: Desk, policy: str = POLICY, **fields: Any) -> dict[str, Any]:
    path = desk.upload("request.json", json.dumps({**REQUEST, **fields}))
    return desk.json(EVALUATE, "--policy", policy, "--request", path, *AT)


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("fields", "outcome", "approvers"),
    [
        ({"amount": 499.99}, "approved", []),
        ({"amount": 500}, "needs_approval", ["manager"]),
        ({"amount": "1,250.00"}, "needs_approval", ["manager"]),
        ({"amount": 25_000}, "needs_approval", ["manager", "director"]),
        ({"amount": 25_001}, "needs_approval", ["director", "vice president", "finance"]),
        ({"amount": 700, "currency": "EUR"}, "needs_approval", ["finance"]),
        ({"amount": 20, "category": "Gift"}, "denied", []),
        ({"amount": 20, "requester": ""}, "escalate", []),
        ({"amount": None}, "escalate", []),
        ({"amount": -5}, "escalate", []),
        ({"amount": 0}, "escalate", []),
        ({"amount": "1.250,00"}, "escalate", []),
        ({"amount": "4,90"}, "escalate", []),
        ({"amount": "499 (or 9000)"}, "escalate", []),
        ({"amount": "NaN"}, "escalate", []),
        ({"amount": True}, "escalate", []),
        ({"amount": [1]}, "escalate", []),
        ({"amount": 20, "category": None}, "escalate", []),
        ({"amount": 700, "requester": "Manager"}, "escalate", ["manager"]),
        ({"amount": 20, "requester": " \u200b\u00a0"}, "escalate", []),
        ({"amount": 20, "requester": "\u3164\u2800\u034f"}, "escalate", []),
        ({"amount": 20, "description": [" "]}, "escalate", []),
        ({"amount": 10**16}, "escalate", []),
        ({"amount": 10**400}, "escalate", []),
        ({"amount": 10**4000}, "escalate", []),
        ({"amount": 1e-300}, "escalate", []),
    ],
)
def test_the_strictest_rule_wins_and_doubt_escalates(
    desk: Desk, fields: dict[str, Any], outcome: str, approvers: list[str]
) -> None:
    decision = decide(desk, **fields)["decision"]
    assert (decision["outcome"], decision["approvers"]) == (outcome, approvers)
    assert len(decision["rationale"]) > 5
    assert decision["next_steps"]


@pytest.mark.parametrize(
    ("given", "doubt"),
    [
        ('{"amount": 9999, "amount": 1', "amount"),
        ('{"amount": 1, "category": "gift", "category": "software"', "category"),
        ('{"amount": 1, "vendor": {"country": "DE", "country": "US"}', "vendor.country"),
    ],
)
def test_a_field_that_is_given_twice_escalates(desk: Desk, given: str, doubt: str) -> None:
    rest = json.dumps({name: REQUEST[name] for name in REQUEST if f'"{name}"' not in given})
    path = desk.upload("request.json", f"{given}, {rest[1:]}")
    record = desk.json(EVALUATE, "--policy", POLICY, "--request", path, *AT)
    assert record["decision"]["outcome"] == "escalate"
    assert f"{doubt} is given several times" in record["evaluation"]["unclear"]
    whole = desk.upload("record.json", json.dumps(record))
    assert desk.script(CHECK, whole, "--policy", POLICY).exit_code == 0


def test_several_rules_ask_all_their_approvers(desk: Desk) -> None:
    rules = [
        {"rule": "a", "when": "amount < 100", "outcome": "approve"},
        {"rule": "b", "when": "always", "outcome": "needs approval", "approvers": ["x", "y"]},
        {
            "rule": "c",
            "when": "site not in (home)",
            "outcome": "needs_approval",
            "approvers": "y + z",
        },
    ]
    policy = desk.upload("p.json", json.dumps({"rules": rules}))
    assert decide(desk, policy, amount=5, site="lab")["decision"]["approvers"] == ["x", "y", "z"]
    assert decide(desk, policy, amount=5, site="home")["decision"]["approvers"] == ["x", "y"]


def test_a_table_in_markdown_is_a_policy_too(desk: Desk) -> None:
    policy = f"{ASSETS}/example-policy.md"
    record = decide(desk, policy, system="billing", level="elevated")
    assert record["decision"]["approvers"] == ["manager", "security"]
    assert record["policy"]["version"] == "1"
    leaver = decide(desk, policy, system="billing", level="standard", leaves_on="2024-06-01")
    assert leaver["decision"]["outcome"] == "escalate"
    unknown = decide(desk, policy, system="billing", level="root")
    assert "no rule of the policy applies" in unknown["decision"]["rationale"]


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("{}", "no rules"),
        ("[", "not valid JSON"),
        (
            '{"rules": [{"when": "always", "outcome": "approve", "outcome": "deny"}]}',
            "outcome several",
        ),
        ('{"rules": [{"when": "amount is big", "outcome": "approve"}]}', "not understood"),
        ('{"rules": [{"when": "a < 1 or b < 2", "outcome": "approve"}]}', "not understood"),
        ('{"rules": [{"when": "always", "outcome": "maybe"}]}', "needs `when` and an `outcome`"),
        ('{"rules": [{"when": "", "outcome": "approve"}]}', "needs `when`"),
        ('{"rules": [{"when": "always", "outcome": "needs_approval"}]}', "no approvers"),
        ('{"rules": [{"when": "always", "outcome": "deny", "risk": "huge"}]}', "huge"),
    ],
)
def test_an_invalid_policy_decides_nothing(desk: Desk, policy: str, words: str) -> None:
    path = desk.upload("p.json", policy)
    request = desk.upload("r.json", "{}")
    result = desk.script(EVALUATE, "--policy", path, "--request", request)
    assert (result.exit_code, result.stdout) == (3, "")
    assert words in result.stderr


@pytest.mark.slow
def test_a_record_is_checked_and_cannot_be_bent(desk: Desk) -> None:
    record = decide(desk, amount=3500)
    assert record["decided_at"] == "2024-05-01T10:00:00Z"
    assert record == decide(desk, amount=3500), "the same request and policy, the same record"
    whole = desk.upload("record.json", json.dumps(record))
    assert desk.script(CHECK, whole, "--policy", POLICY).stdout == "The record is right.\n"
    bent = json.loads(json.dumps(record))
    bent["decision"] |= {"outcome": "approved", "approvers": []}
    path = desk.upload("record.json", json.dumps(bent))
    assert desk.script(CHECK, path).exit_code == 0, "its form is right"
    found = desk.script(CHECK, path, "--policy", POLICY)
    assert found.exit_code == 1
    assert "decision: not what the policy gives" in found.stdout
    other = desk.upload("p.json", '{"rules": [{"when": "always", "outcome": "approve"}]}')
    assert desk.script(CHECK, whole, "--policy", other).exit_code == 1


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"decision_id": "DEC-1"}, "decision_id"),
        ({"decided_at": "yesterday"}, "decided_at"),
        ({"approved_by": "me"}, "approved_by: is not part"),
        ({"request": "text"}, "must be of type object"),
        ({"decision": {"outcome": "fine"}}, "approvers is missing"),
    ],
)
def test_the_form_of_a_record(desk: Desk, change: dict[str, Any], words: str) -> None:
    path = desk.upload("record.json", json.dumps({**decide(desk, amount=5), **change}))
    problems = desk.json(CHECK, path, "--json", exit_code=1)["problems"]
    assert any(words in problem for problem in problems)
