"""Option types that several commands share."""

from __future__ import annotations

import click
import pytest

from agents.doors.cli.options import Days


@pytest.mark.parametrize(("given", "days"), [("0", 0), ("90", 90), ("90d", 90), ("36500d", 36_500)])
def test_days_are_a_number_with_or_without_a_d(given: str, days: int) -> None:
    assert Days(least=0).convert(given, None, None) == days


@pytest.mark.parametrize("given", ["", "d", "0", "-1", "+1", "1.5", "90h", "90dd", "٣", "36501"])
def test_other_texts_and_numbers_out_of_range_are_not_days(given: str) -> None:
    with pytest.raises(click.BadParameter, match="from 1 to 36500"):
        Days(least=1).convert(given, None, None)
