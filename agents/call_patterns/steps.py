"""How much of one call its conditions may read, all rules together."""

from __future__ import annotations

from typing import Any

MOST_STEPS = 300_000_000
"""About a second. A step is a byte that RE2 looks at, or a byte for each instruction of an
expression for which it may have to follow all of them."""


FEW_WILDCARDS = 6
"""With so few, the states that RE2 has to follow stay few as well."""

_OVERHEAD = 500
"""Steps that any question to RE2 takes."""


class TooMuchToRead(Exception):
    """The call is too long, or too odd, to be compared with a condition.

    To ask or to deny, the condition then fits; to permit, it does not.
    """


class Steps:
    """What is left."""

    def __init__(self) -> None:
        self.left = MOST_STEPS

    def take(self, number: int) -> None:
        """Raises `TooMuchToRead`."""
        self.left -= number
        if self.left < 0:
            raise TooMuchToRead

    def search(self, expression: Any, data: bytes, *, simple: bool) -> bool:
        """Whether it is in `data`. `simple`: RE2 follows few states, however long the data is."""
        self._take_for(expression, data, simple)
        return expression.search(data) is not None

    def fullmatch(self, expression: Any, data: bytes, *, simple: bool) -> bool:
        self._take_for(expression, data, simple)
        return expression.fullmatch(data) is not None

    def _take_for(self, expression: Any, data: bytes, simple: bool) -> None:
        self.take(_OVERHEAD + len(data) * (1 if simple else expression.programsize))
