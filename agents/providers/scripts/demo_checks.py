"""The demo's two subagents: each checks the figures by another method."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from agents.demo.task import CHECK_WITH_AWK, CHECK_WITH_SQL, FIGURES, program
from agents.providers.scripts.base import ScriptTurn
from agents.providers.scripts.demo_results import PROGRAM_SECONDS, Unexpected

COUNT = "SELECT count(*) AS days, min(date) AS first, max(date) AS last FROM days"
MONTHS = """\
SELECT substr(date, 6, 2) AS month,
       sum(precipitation) / count(DISTINCT substr(date, 1, 4)) AS rain_mm
FROM days
GROUP BY month
ORDER BY month"""
CLOSE = 1e-6
"""Largest difference of equal figures, in mm: another order of additions causes it."""
_SAID = re.compile(r"\d+ (?:figures|months) compared, \d+ differ")
_ROW = re.compile(r"\|\s*(\d\d)\s*\|\s*([\d.]+)\s*\|")


def outcome(answer: str) -> str:
    """Return the sentence `N figures compared, N differ` in a check's answer.

    Without one, returns the first 200 characters of the answer.
    """
    found = _SAID.search(answer)
    return found.group() if found else answer[:200]


def _run_awk(results: list[Any]) -> ScriptTurn:
    return ScriptTurn(
        "I let awk compute them from the CSV and compare.",
        [("execute", {"command": program("check.sh"), "timeout": PROGRAM_SECONDS})],
    )


def _say_awk(results: list[Any]) -> ScriptTurn:
    return ScriptTurn(f"{results[0]['stdout'].strip()}.")


def _ask_sql(results: list[Any]) -> ScriptTurn:
    return ScriptTurn(
        "One query for the months, and a look at what was claimed.",
        [("execute_sql", {"query": MONTHS}), ("read_file", {"path": FIGURES, "limit": 200})],
    )


def _say_sql(results: list[Any]) -> ScriptTurn:
    table, figures = results
    found = {month: float(rain) for month, rain in _ROW.findall(table["table"])}
    claimed = dict(re.findall(r"month (\d\d) rain_mm,([\d.]+)", figures["content"]))
    if len(found) != 12 or found.keys() != claimed.keys():
        raise Unexpected(f"there are {len(found)} months, and figures of {len(claimed)}")
    differ = [month for month, rain in found.items() if abs(rain - float(claimed[month])) > CLOSE]
    wrong = f": {', '.join(differ)}" if differ else ""
    return ScriptTurn(f"{len(found)} months compared, {len(differ)} differ{wrong}.")


Turns = Sequence[Callable[[list[Any]], ScriptTurn]]


def turns_for(request: str) -> Turns | None:
    """Return the turns of a subagent with one of the checks; None for any other request."""
    said = " ".join(request.split())
    if " ".join(CHECK_WITH_AWK.split()) in said:
        return (_run_awk, _say_awk)
    if " ".join(CHECK_WITH_SQL.split()) in said:
        return (_ask_sql, _say_sql)
    return None
