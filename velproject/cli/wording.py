"""Inputs and results of tools, and runs' totals, as short text for the terminal."""

from __future__ import annotations

from itertools import islice
from typing import Any

from agents.doors.cli.terminal import one_line, visible
from agents.review.json_text import one_line_of
from velproject.cli.result_text import result_text

RESULT_LINES = 6
LINE_WIDTH = 160
OTHERS_WIDTH = 40
_LOOKED_AT = 8 * LINE_WIDTH


def short_input(given: Any) -> str:
    """Return a tool's input as one short line: the first value, then the others by their names."""
    if not isinstance(given, dict) or not given:
        return one_line(one_line_of(given, _LOOKED_AT)) if given else ""
    # More names than the line has characters are ignored.
    first, *others = (
        (name, value if isinstance(value, str) else one_line_of(value, _LOOKED_AT))
        for name, value in islice(given.items(), LINE_WIDTH)
    )
    named = [f"{name}={one_line(value, OTHERS_WIDTH)}" for name, value in others]
    return one_line("  ".join([one_line(first[1]), *named]), LINE_WIDTH)


def short_output(output: str) -> list[str]:
    """Return the beginning of a tool's result as safe lines; for a command, of its output."""
    text = visible(result_text(output)).rstrip()
    lines = [line[:LINE_WIDTH] for line in text.split("\n")]
    if len(lines) > RESULT_LINES:
        lines[RESULT_LINES:] = [f"… {len(lines) - RESULT_LINES} more lines"]
    return lines


def totals(data: dict[str, Any]) -> str:
    """Return tokens and cost of a run as one line."""
    usage = data["usage"]
    read = usage.get("cache_read_tokens", 0)
    given = usage["input_tokens"] + read + usage.get("cache_write_tokens", 0)
    cached = f" ({read:,} from the cache)" if read else ""
    cost = data.get("cost")
    price = "at an unknown price" if cost is None else f"${float(cost):.4f}"
    return f"{given:,} tokens in{cached}, {usage['output_tokens']:,} out, {price}"
