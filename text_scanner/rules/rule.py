"""Rules of intent: combinations of word classes in a sentence that indicate an attack.

A rule has an anchor and needs. Each need is a set of classes that another word must have, within a
number of characters before or after the anchor. `+` requires that the word is not negated, `-` that
it is negated ("never tell"), and `.` accepts both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from text_scanner.concepts import C
from text_scanner.finding import Severity

Polarity = Literal["+", "-", "."]


@dataclass(frozen=True, slots=True)
class Need:
    """A word of one of `classes`, at most `before` or `after` characters from the anchor."""

    classes: int
    polarity: Polarity = "."
    before: int = 120
    after: int = 120


@dataclass(frozen=True, slots=True)
class Rule:
    """A combination of words, with its name, description and severity."""

    pattern: str
    description: str
    severity: Severity
    anchor: Need
    needs: tuple[Need, ...]
    unless: int = 0
    """The rule does not match if the sentence has a word of these classes that is not negated."""

    one_negation: bool = False
    """Requires exactly one negation, unlike in "never deploy without approval"."""

    wide: bool = False
    """Also matches across two consecutive sentences."""

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
