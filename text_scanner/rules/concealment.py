"""Rules about hiding actions from people."""

from __future__ import annotations

from text_scanner.concepts import C
from text_scanner.rules.rule import DATAS, GUARD, OUT, SENDS, Rule, need, rule

CONCEALMENT: tuple[Rule, ...] = (
    rule(
        "conceal-from-user",
        "Instructs the agent to hide something from people",
        "danger",
        need(C.TELL, "-"),
        need(C.PERSON, ".", 15, 45),
        need(C.SELF | C.SELF_NOUN, ".", 15, 45),
        unless=GUARD | C.TEACH,
    ),
    rule(
        "conceal-from-user",
        "Instructs the agent to hide something from people",
        "danger",
        need(C.TELL, "-"),
        need(C.IT, ".", 0, 2),
        need(C.PERSON, ".", 0, 30),
        need(C.PROHIBIT | C.NEG, ".", 25, 0),
        unless=GUARD | C.TEACH,
    ),
    rule(
        "conceal-from-user",
        "Instructs the agent to leave no note of an action",
        "warning",
        need(C.SKIP, "+"),
        need(C.TELL | C.HUSH | C.CLAIM, ".", 0, 8),
        need(C.SEND, "+", 160, 0),
        need(OUT | C.SECRET, ".", 160, 0),
        wide=True,
    ),
    rule(
        "conceal-from-user",
        "Instructs the agent to hide an action from people",
        "danger",
        need(C.TELL | C.HUSH, "-"),
        need(C.PERSON, ".", 15, 40),
        need(SENDS | C.COPY | C.DELETE | C.PAY, "+", 140, 0),
        need(C.SECRET | DATAS | C.STORE | C.TRACES | C.BANK, ".", 140, 0),
        need(OUT | C.STORE | C.TRACES, ".", 140, 0),
    ),
    rule(
        "conceal-from-user",
        "Says that the user must not know",
        "danger",
        need(C.KNOW, "-"),
        need(C.PROHIBIT, ".", 40, 0),
        need(C.PERSON, ".", 30, 0),
        need(C.SELF | C.SELF_NOUN | C.AGENT | C.INSTRUCTION | SENDS | DATAS, ".", 0, 60),
    ),
    rule(
        "stealth",
        "An action that should stay secret",
        "danger",
        need(C.STEALTH, "+"),
        need(SENDS | C.DELETE | C.GRANT | C.COPY, "+", 25, 15),
        need(OUT | C.SECRET | C.STORE | C.TRACES | C.ACCESS, ".", 140, 140),
        unless=GUARD | C.MODAL,
    ),
    rule(
        "stealth",
        "Hides the agent's actions from people",
        "danger",
        need(C.STEALTH, "+"),
        need(C.PERSON, ".", 15, 40),
        need(C.SELF | C.SELF_NOUN | SENDS | C.STORE | C.ACTION, ".", 60, 60),
        need(C.STANDING | SENDS | C.COPY | C.EXECUTE | C.TELL, "."),
        unless=GUARD | C.TEACH | C.MODAL,
    ),
    rule(
        "conceal-from-user",
        "An action that people should not know about",
        "danger",
        need(C.HIDE, "+"),
        need(SENDS | C.PLANT | C.GRANT | C.DELETE | C.PAY | C.EXECUTE, ".", 150, 100),
        need(
            OUT
            | C.SECRET
            | C.SENSITIVE
            | C.ACCESS
            | C.STORE
            | C.TRACES
            | C.BANK
            | C.ALL
            | C.STANDING,
            ".",
            170,
            120,
        ),
        wide=True,
        unless=GUARD | C.TEACH,
    ),
    rule(
        "conceal-from-user",
        "Something that people should not know about",
        "warning",
        need(C.HIDE, "+"),
        need(
            C.SELF_NOUN | C.SELF | C.INSTRUCTION | C.STORE | C.STANDING | C.DOWNSIDE, ".", 120, 60
        ),
        unless=GUARD | C.MODAL | C.TEACH,
    ),
    rule(
        "conceal-from-user",
        "Instructs the agent to hide an action from people",
        "danger",
        need(C.TELL, "-"),
        need(C.PERSON, ".", 15, 45),
        need(SENDS, ".", 100, 100),
        need(C.EMAIL | C.URL | C.SHADY, ".", 100, 100),
        unless=GUARD | C.MODAL | C.TEACH,
    ),
    rule(
        "deception",
        "Makes the agent deceive people",
        "warning",
        need(C.DECEIVE, "+"),
        need(C.AGENT | C.PERSON | C.SELF_NOUN | C.IT, "."),
        unless=GUARD | C.TEACH | C.ATTACKER,
    ),
    rule(
        "override-instructions",
        "Says that earlier instructions are void",
        "danger",
        need(C.VOID, "+"),
        need(C.PRIOR_STRONG, ".", 60, 0),
        need(C.INSTRUCTION, ".", 45, 0),
        need(C.AGENT | C.SYSTEM | C.SECRET | C.SELF_NOUN, ".", 90, 90),
        wide=True,
        unless=GUARD | C.TEACH,
    ),
    rule(
        "override-instructions",
        "Says that the agent's rules are off",
        "danger",
        need(C.VOID, "+"),
        need(C.RULES_OF_AGENT, ".", 50, 20),
        need(
            C.AGENT | C.SECRET | C.RISKY | C.STANDING | C.SYSTEM | C.NO_APPROVAL | C.ALL,
            ".",
            90,
            120,
        ),
        wide=True,
        unless=GUARD | C.TEACH,
    ),
    rule(
        "stealth",
        "Gives access that should stay secret",
        "danger",
        need(C.STEALTH, "+"),
        need(C.GRANT, "+", 110, 20),
        need(C.SECRET | C.ACCESS, ".", 110, 40),
        unless=GUARD | C.TEACH | C.MODAL,
    ),
)
