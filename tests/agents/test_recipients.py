"""Rules for the recipients of a call."""

from __future__ import annotations

from typing import Any

import pytest

from agents.conditions import holds, problem_of
from agents.policy import judge
from agents.spec import AgentSpec, CallCondition, PolicyRule

OURS = CallCondition(recipient="*@example.org")


def fits(given: dict[str, Any], *, permits: bool, condition: CallCondition = OURS) -> bool:
    return holds(condition, "send_gmail_message", given, permits=permits)


@pytest.mark.parametrize(
    ("given", "all_fit", "any_fits"),
    [
        ({"to": ["ann@example.org"]}, True, True),
        ({"to": "Ann@EXAMPLE.org"}, True, True),
        ({"to": ["ann@example.org"], "bcc": ["eve@evil.example"]}, False, True),
        ({"attendees": ["ann@example.org"], "cc": []}, True, True),
        ({"to": []}, False, False),
        ({"to": ["ann@example.org, eve@evil.example"]}, False, True),
        ({"to": ["eve <ann@example.org>"]}, False, True),
        ({"to": ["ann@example.org@evil.example"]}, False, True),
        ({"to": ["ann@example.org\n"]}, False, True),
        ({"to": ["ann@example.org.evil.example"]}, False, False),
        ({"to": ["ann@sub.example.org"]}, False, False),
        ({"to": [["ann@example.org"]]}, False, True),
        ({"to": {"x": "ann@example.org"}}, False, True),
        ({"text": "ann@example.org"}, False, False),
        ({}, False, False),
    ],
)
def test_all_must_fit_to_allow_and_any_to_ask(
    given: dict[str, Any], all_fit: bool, any_fits: bool
) -> None:
    assert fits(given, permits=True) is all_fit
    assert fits(given, permits=False) is any_fits


ENCODED = "xn--bcher-kva.example"


@pytest.mark.parametrize(
    ("pattern", "address", "fits_it"),
    [
        (f"*@{ENCODED}", "ann@bücher.example", True),
        (f"*@{ENCODED}", "Ann <ann@BÜCHER.example>", True),
        (f"ann@{ENCODED}", "ann@bücher。example", True),
        (f"ann@{ENCODED}", "eve@bücher.example", False),
        (f"*@{ENCODED}", "ann@bucher.example", False),
        ("*@xn--*.example", "ann@bücher.example", True),
        (f"*@{ENCODED}", f"ann@{'ü' * 300}.example", False),
    ],
)
def test_a_domain_with_other_letters_is_the_same_domain(
    pattern: str, address: str, fits_it: bool
) -> None:
    condition = CallCondition(recipient=pattern)
    assert fits({"to": [address]}, permits=False, condition=condition) is fits_it
    assert not fits({"to": [address]}, permits=True, condition=condition)


def test_recipients_match_the_allowed_list() -> None:
    rules = (
        PolicyRule(tool="send_gmail_message", when=OURS, action="allow"),
        PolicyRule(tool="send_gmail_message", action="deny", reason="To our own people only."),
    )
    spec = AgentSpec(name="T", slug="t", provider="p", model="m", approval_rules=rules)

    def verdict(*to: str) -> str:
        given = {"to": list(to), "subject": "x", "text": "y"}
        return judge(spec, "send_gmail_message", "external", given).action

    assert verdict("ann@example.org") == "allow"
    assert verdict("ann@example.org", "eve@evil.example") == "deny"


@pytest.mark.parametrize("pattern", ["example.org", "a b@c.de", "*@", "@x.org", "a@b@c", "*"])
def test_an_invalid_pattern_is_refused(pattern: str) -> None:
    found = problem_of(CallCondition.model_construct(recipient=pattern))
    assert found is not None
    assert found[0] == "recipient"
