"""Rules of intent: combinations of word classes in a sentence that indicate an attack."""

from __future__ import annotations

from text_scanner.rules.approval import APPROVAL
from text_scanner.rules.concealment import CONCEALMENT
from text_scanner.rules.exfiltration import EXFILTRATION
from text_scanner.rules.override import OVERRIDE
from text_scanner.rules.persistence import PERSISTENCE
from text_scanner.rules.rule import Need, Rule
from text_scanner.rules.tampering import TAMPERING

RULES: tuple[Rule, ...] = (
    *OVERRIDE,
    *CONCEALMENT,
    *EXFILTRATION,
    *APPROVAL,
    *PERSISTENCE,
    *TAMPERING,
)

__all__ = ["RULES", "Need", "Rule"]
