"""Numbers in a text, as a reader finds them."""

from __future__ import annotations

import re

NUMBER = re.compile(r"[-\u2212]?\d[\d,]*(?:\.\d+)?")


def numbers(text: str) -> list[str]:
    return NUMBER.findall(text)


def assert_agree(written: list[str], expected: list[float]) -> None:
    """Check that each number is the expected one, rounded to the shown digits."""
    assert len(written) == len(expected), (written, expected)
    for text, value in zip(written, expected, strict=True):
        plain = text.replace(",", "").replace("\u2212", "-")
        digits = len(plain.partition(".")[2])
        distance = abs(float(plain) - value)
        assert distance <= 0.5 * 10**-digits + 1e-9, f"{text} is written, {value} was found"
