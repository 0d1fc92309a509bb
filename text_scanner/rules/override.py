"""Rules about ignoring instructions."""

from __future__ import annotations

from text_scanner.concepts import C
from text_scanner.rules.rule import GUARD, Rule, need, rule

OVERRIDE: tuple[Rule, ...] = (
    rule(
        "override-instructions",
        "Instructs the agent to ignore its instructions",
        "danger",
        need(C.OVERRIDE, "+"),
        need(C.PRIOR_STRONG, ".", 15, 25),
        need(C.INSTRUCTION, ".", 30, 40),
    ),
    rule(
        "override-instructions",
        "Instructs the agent to ignore its instructions",
        "danger",
        need(C.OVERRIDE, "+"),
        need(C.PRIOR, ".", 0, 25),
        need(C.INSTRUCTION, ".", 0, 40),
        need(C.AGENT | C.PRIOR | C.SYSTEM | C.ALL | C.OBEY, ".", 0, 60),
    ),
    rule(
        "override-instructions",
        "Instructs the agent to ignore its instructions",
        "danger",
        need(C.OVERRIDE, "+"),
        need(C.SYSTEM, ".", 20, 25),
        need(C.INSTRUCTION, ".", 40, 35),
    ),
    rule(
        "override-instructions",
        "Instructs the agent to ignore its instructions",
        "danger",
        need(C.OVERRIDE, "+"),
        need(C.RULES_OF_AGENT, ".", 0, 20),
        unless=GUARD | C.TEACH | C.MODAL,
    ),
    rule(
        "override-authority",
        "Claims more authority than the user or the system",
        "danger",
        need(C.OUTRANK, "+"),
        need(C.SYSTEM, "+", 0, 40),
        need(C.INSTRUCTION, ".", 40, 60),
        need(C.SELF_NOUN | C.SELF, ".", 60, 0),
    ),
)
