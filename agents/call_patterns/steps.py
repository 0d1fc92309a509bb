"""The budget for conditions on one call, for all rules together."""

from __future__ import annotations

from typing import Any

MOST_STEPS = 300_000_000
"""About one second. A step is a byte that RE2 reads.

For expressions that are not simple, it is a byte for each instruction of the expression.
"""


FEW_WILDCARDS = 6
"""With so few wildcards, RE2 also has few states."""

_OVERHEAD = 500
"""Minimum steps of each call of RE2."""


class TooMuchToRead(Exception):
    """The call is too long or too unusual for a part of a condition.

    To ask or to deny, this part then counts as a match; to permit, the condition does not match.
    """


class Steps:
    """The remaining steps."""

    def __init__(self) -> None:
        self.left = MOST_STEPS

    def take(self, number: int) -> None:
        """Spend steps. Raises `TooMuchToRead`."""
        self.left -= number
        if self.left < 0:
            raise TooMuchToRead

    def search(self, expression: Any, data: bytes, *, simple: bool) -> bool:
        """Return whether `expression` matches somewhere in `data`. Raises `TooMuchToRead`.

        `simple` means that RE2 needs few states for the expression, however long the data are.
        """
        self._take_for(expression, data, simple)
        return expression.search(data) is not None

    def fullmatch(self, expression: Any, data: bytes, *, simple: bool) -> bool:
        self._take_for(expression, data, simple)
        return expression.fullmatch(data) is not None

    def _take_for(self, expression: Any, data: bytes, simple: bool) -> None:
        self.take(_OVERHEAD + len(data) * (1 if simple else expression.programsize))
