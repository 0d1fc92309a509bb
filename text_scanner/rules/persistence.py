"""Rules about notes that copy themselves, persist, or change the agent's role."""

from __future__ import annotations

from text_scanner.concepts import C
from text_scanner.rules.rule import Rule, need, rule

PERSISTENCE: tuple[Rule, ...] = (
    # Self-replication and persistence
    rule(
        "self-replication",
        "Makes the agent copy this text into its memory or elsewhere",
        "danger",
        need(C.SELF_NOUN, "."),
        need(C.COPY, "+", 40, 15),
        need(C.STORE, ".", 60, 80),
        need(C.ALL | C.STANDING, ".", 80, 100),
    ),
    rule(
        "self-replication",
        "Makes the agent copy this text into its memory or elsewhere",
        "danger",
        need(C.COPY, "+"),
        need(C.IT, ".", 0, 4),
        need(C.STORE, ".", 0, 30),
        need(C.ALL | C.STANDING, ".", 80, 60),
    ),
    rule(
        "self-replication",
        "Makes the agent restore this text when it is removed",
        "danger",
        need(C.RESTORE, "+"),
        need(C.SELF_NOUN, ".", 120, 60),
        need(C.DELETE, ".", 100, 80),
    ),
    rule(
        "persistence",
        "Makes something run automatically",
        "danger",
        need(C.STARTUP, "."),
        need(C.COPY | C.PLANT | C.INSTALL, "+", 100, 40),
        need(C.URL | C.SHADY, ".", 100, 80),
        need(C.STANDING | C.STEALTH | C.SHADY | C.ALL, "."),
    ),
    # Persona
    rule(
        "persona-change",
        "Gives the agent a persona without limits",
        "danger",
        need(C.UNBOUND, "."),
        need(C.PERSONA, "+", 60, 40),
    ),
)
