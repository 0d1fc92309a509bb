"""Define a rule of intent: a combination of word classes in a sentence that indicates an attack.

A rule has an anchor word and needs. Each need is a set of classes that another word must have,
within a number of characters before or after the anchor. `+` requires that this word is not
negated, `-` that it is negated ("never tell"), and `.` accepts both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from text_scanner.concepts import C
from text_scanner.finding import Severity

Polarity = Literal["+", "-", "."]


@dataclass(frozen=True, slots=True)
class Need:
    """A word that a rule needs in addition to its anchor.

    The word has one of `classes`, at most `before` characters before or `after` characters after
    the anchor.
    """

    classes: int
    polarity: Polarity = "."
    before: int = 120
    after: int = 120


@dataclass(frozen=True, slots=True)
class Rule:
    """A combination of word classes, with the name, description and severity of its findings."""

    pattern: str
    description: str
    severity: Severity
    anchor: Need
    needs: tuple[Need, ...]
    unless: int = 0
    """Classes that exclude a match, if the sentence has a word of them that is not negated."""

    one_negation: bool = False
    """Whether a match needs exactly one negation: "never deploy without approval" has two."""

    wide: bool = False
    """Whether the rule also matches across two consecutive sentences."""

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
