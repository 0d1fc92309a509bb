"""Rules about credentials and about acting without approval."""

from __future__ import annotations

from text_scanner.concepts import C
from text_scanner.rules.rule import AIMED, DATAS, GUARD, OUT, SENDS, Rule, need, rule

APPROVAL: tuple[Rule, ...] = (
    rule(
        "ask-for-credentials",
        "Makes the agent ask people for their credentials",
        "warning",
        need(C.ASK, "+"),
        need(C.PERSON, ".", 0, 16),
        need(C.CREDENTIAL, "+", 0, 80),
        need(SENDS | C.COPY, "+", 0, 140),
        need(C.STORE | OUT, ".", 0, 180),
        unless=GUARD | C.TEACH | C.ATTACKER,
    ),
    rule(
        "false-approval",
        "Claims an approval for all later actions",
        "danger",
        need(C.APPROVED, "+"),
        need(C.BLANKET, ".", 25, 30),
        need(C.ACTION, ".", 40, 50),
        need(C.PERSON | C.SKIP | C.SYSTEM | C.NEG | C.AGENT, ".", 60, 60),
        unless=GUARD | C.MODAL,
    ),
    rule(
        "false-approval",
        "Claims an approval for all later actions",
        "warning",
        need(C.BLANKET_APPROVAL, "+"),
        need(C.ACTION | C.RISKY | C.AGENT, ".", 60, 60),
        unless=GUARD | C.MODAL | C.TEACH,
    ),
    rule(
        "skip-approval",
        "Makes the agent act without approval",
        "warning",
        need(C.NO_APPROVAL, "+"),
        need(C.RISKY | C.ACTION, "+", 70, 70),
        need(
            C.AGENT
            | C.STANDING
            | C.ALL
            | C.PERSON
            | C.EXECUTE
            | C.APPROVED
            | C.DELETE
            | C.PAY
            | C.SEND
            | C.BLANKET,
            ".",
            80,
            80,
        ),
        unless=GUARD | C.TEACH | C.MODAL,
    ),
    rule(
        "skip-approval",
        "Makes the agent act without approval",
        "warning",
        need(C.APPROVAL, "-"),
        need(C.NEG, ".", 14, 14),
        need(C.RISKY, ".", 50, 40),
        need(
            C.AGENT | C.STANDING | C.ALL | C.PERSON | C.EXECUTE | C.PAY | C.DELETE | C.APPROVED,
            ".",
            80,
            80,
        ),
        one_negation=True,
        unless=GUARD | C.TEACH | C.MODAL,
    ),
    rule(
        "skip-approval",
        "Makes the agent skip an approval",
        "warning",
        need(C.SKIP, "+"),
        need(C.APPROVAL, ".", 25, 25),
        need(C.RISKY, ".", 60, 80),
        unless=GUARD | C.TEACH | C.MODAL,
    ),
    rule(
        "disable-safeguard",
        "Turns a safeguard of the agent off",
        "danger",
        need(C.DISABLE, "+"),
        need(C.SAFEGUARD, ".", 25, 30),
        need(AIMED | C.SELF | C.STEALTH | C.STORE | C.RISKY | DATAS, ".", 100, 100),
        unless=GUARD | C.TEACH | C.MODAL | C.ATTACKER,
    ),
    rule(
        "disable-safeguard",
        "A standing order that turns a control off",
        "warning",
        need(C.CONTROL, "."),
        need(C.DISABLE, "+", 25, 25),
        need(C.STANDING | C.STEALTH, "+", 60, 30),
        unless=GUARD | C.TEACH | C.MODAL,
    ),
    rule(
        "disable-safeguard",
        "A standing order that turns a control off",
        "warning",
        need(C.CONTROL_OFF, "+"),
        need(C.STANDING, "+", 60, 40),
        unless=GUARD | C.TEACH | C.MODAL,
    ),
    rule(
        "disable-safeguard",
        "Keeps a safeguard from being used",
        "warning",
        need(C.SAFEGUARD, "-"),
        need(C.NEG | C.PROHIBIT, ".", 25, 0),
        need(C.OBEY | C.EXECUTE | C.FETCH, "-", 20, 0),
        one_negation=True,
        unless=GUARD | C.TEACH | C.MODAL,
    ),
)
