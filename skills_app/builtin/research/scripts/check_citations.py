#!/usr/bin/env python3
"""Check that every claim of a report names a source that is in the log.

A claim is a paragraph, a list item or a table row, outside of the sections that describe the work
(scope, method, limitations, open questions, sources, appendix). It names sources as [S1], or is
marked as (interpretation). Exit code 0: correct. 1: problems, one on each line.
"""

from __future__ import annotations

import argparse
import json
import re

from outcome import PROBLEMS, UNREADABLE, Stop, deliver, input_file, run
from source_log import problems_of, read_log

_FREE = (
    "scope", "question", "method", "limitation", "open question", "source", "reference",
    "appendix", "gaps",
)  # fmt: skip
_MARK = re.compile(r"\[(S\d+(?:\s*[,;]\s*S\d+)*)\]")
_INTERPRETATION = re.compile(r"\(interpretation\)", re.IGNORECASE)
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-ZÀ-Þ])")
_PLACEHOLDER = re.compile(r"\{\{.+?\}\}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", help="the Markdown file")
    parser.add_argument("--log", required=True, help="the log of sources")
    parser.add_argument(
        "--figures", action="store_true", help="each sentence with a number names its own source"
    )
    parser.add_argument("--json", action="store_true", help="the problems as JSON")
    given = parser.parse_args()
    try:
        text = input_file(given.report).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise Stop(f"{given.report} is not UTF-8 text.", UNREADABLE) from None
    entries = read_log(given.log)
    claims = claims_of(text)
    problems = problems_of(entries)
    if not claims:
        problems.append("The report has no claims: no text outside of its method and sources.")
    problems += _unsourced(claims, figures=given.figures)
    cited = {each for _, claim in claims for each in cited_in(claim)} | set(cited_in(text))
    known = {str(entry.get("id")) for entry in entries}
    problems += [f"[{each}] is not in the log." for each in sorted(cited - known, key=_number)]
    problems += [
        f"{each} is in the log, but the report does not use it."
        for each in sorted(known - cited, key=_number)
    ]
    if given.json:
        result = {"claims": len(claims), "sources": len(entries), "problems": problems}
        deliver(json.dumps(result, ensure_ascii=False, indent=2) + "\n", None)
    else:
        good = f"All {len(claims)} claims name a source from the log."
        deliver("\n".join(problems or [good]) + "\n", None)
    return PROBLEMS if problems else 0


def claims_of(text: str) -> list[tuple[int, str]]:
    """Return (line number, text) of each block that must name a source."""
    claims: list[tuple[int, str]] = []
    block: list[str] = []
    start = free_below = 0
    fenced = table = False

    def finish() -> None:
        words = " ".join(block).strip()
        if words and re.search(r"\w", _MARK.sub("", words)):
            claims.append((start, words))
        block.clear()

    for number, line in enumerate([*text.splitlines(), ""], 1):
        stripped = line.strip()
        if stripped.startswith(("```", "~~~")):
            finish()
            fenced = not fenced
            continue
        if fenced:
            continue
        heading = re.match(r"(#{1,6})\s+(.*)", stripped)
        if heading:
            finish()
            level = len(heading[1])
            if not free_below or level <= free_below:
                name = heading[2].casefold()
                free_below = level if any(word in name for word in _FREE) else 0
            continue
        if free_below:
            continue
        row = stripped.startswith("|")
        if (
            not stripped
            or _ITEM.match(line)
            or row
            or stripped.startswith(("**Date", "**Author", "---"))
        ):
            finish()
        if row:
            # Skip the first row of a table, which names its columns.
            if table and not re.fullmatch(r"[|:\-\s]+", stripped):
                claims.append((number, stripped))
            table = True
            continue
        table = False
        if not stripped or re.match(r"\*\*(Date|Author|Status)\b", stripped) or stripped == "---":
            continue
        if not block:
            start = number
        block.append(stripped.lstrip("> "))
    finish()
    return claims


def cited_in(text: str) -> list[str]:
    return [each for found in _MARK.finditer(text) for each in re.findall(r"S\d+", found[1])]


def _unsourced(claims: list[tuple[int, str]], *, figures: bool) -> list[str]:
    problems = []
    for line, claim in claims:
        if _PLACEHOLDER.search(claim):
            problems.append(f"line {line}: a placeholder is left: {_short(claim)}")
        elif not cited_in(claim) and not _INTERPRETATION.search(claim):
            problems.append(f"line {line}: no source: {_short(claim)}")
        elif figures and not _INTERPRETATION.search(claim):
            for sentence in _SENTENCE.split(claim):
                if re.search(
                    r"\d", _MARK.sub("", _ITEM.sub("", sentence, count=1))
                ) and not cited_in(sentence):
                    problems.append(f"line {line}: a figure without a source: {_short(sentence)}")
    return problems


def _short(text: str) -> str:
    return text if len(text) <= 90 else text[:89] + "…"


def _number(name: str) -> tuple[int, str]:
    digits = re.sub(r"\D", "", name)
    return (int(digits) if digits else 0, name)


if __name__ == "__main__":
    run(main)
