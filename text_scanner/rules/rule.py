"""Rules of intent: which classes of words, near each other in a sentence, mean harm to whom.

A rule has an anchor and needs; each need is a set of classes that another word must have, at most
so many characters before or after the anchor. `+` wants the word meant, `-` wants it denied
("never tell"), `.` takes both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from text_scanner.concepts import C
from text_scanner.finding import Severity

Polarity = Literal["+", "-", "."]


@dataclass(frozen=True, slots=True)
class Need:
    """A word of one of `classes`, meant or denied, within the reach of the anchor."""

    classes: int
    polarity: Polarity = "."
    before: int = 120
    after: int = 120


@dataclass(frozen=True, slots=True)
class Rule:
    """What is looked for, what it is called, and how bad it is."""

    pattern: str
    description: str
    severity: Severity
    anchor: Need
    needs: tuple[Need, ...]
    unless: int = 0
    """Classes of which no meant word may stand in the sentence."""

    one_negation: bool = False
    """Not where a second one undoes it: "never deploy without approval"."""

    wide: bool = False
    """Also over two sentences that follow each other."""

    @property
    def masks(self) -> tuple[int, ...]:
        return (self.anchor.classes, *(need.classes for need in self.needs))


def need(classes: C, polarity: Polarity = ".", before: int = 120, after: int = 120) -> Need:
    return Need(int(classes), polarity, before, after)


OUT = C.URL | C.EMAIL | C.OUTSIDE | C.SHADY
GUARD = C.FORBID
SENDS = C.SEND | C.SEND_TOO
DATAS = C.DATA | C.SENSITIVE


def rule(
    pattern: str,
    description: str,
    severity: Severity,
    anchor: Need,
    *needs: Need,
    unless: C | int = GUARD,
    one_negation: bool = False,
    wide: bool = False,
) -> Rule:
    return Rule(pattern, description, severity, anchor, needs, int(unless), one_negation, wide)


AIMED = C.STANDING | C.AGENT | C.ALL
