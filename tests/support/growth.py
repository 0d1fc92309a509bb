"""Check that four times the input takes about four times the time."""

from __future__ import annotations

import time
from collections.abc import Callable

TIMES = 4
"""How much larger the larger input is."""
_MOST = 8
"""Linear work takes 4 times as long, quadratic work 16 times."""
_NOISE = 0.004
"""Seconds. Less cannot be measured well."""
_TRIES = 5


def assert_linear(small: Callable[[], object], large: Callable[[], object]) -> None:
    """Fail if `large`, with TIMES the input of `small`, takes much more than TIMES the time.

    Other processes and the garbage collector disturb a measurement. So the shortest of a few
    counts, and the first good one ends the search.
    """
    least_small = min(_processor_time(small) for _ in range(2))
    least_large = _processor_time(large)
    for _ in range(_TRIES - 1):
        if least_large < _MOST * least_small + _NOISE:
            return
        least_small = min(least_small, _processor_time(small))
        least_large = min(least_large, _processor_time(large))
    assert least_large < _MOST * least_small + _NOISE, (least_small, least_large)


def _processor_time(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun
