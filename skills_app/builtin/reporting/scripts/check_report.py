#!/usr/bin/env python3
"""Check a Markdown report before you hand it over.

It finds missing and empty sections, placeholders, a missing date, and broken links and pictures.
Exit code 0: no problems. 1: a list of problems.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from urllib.parse import unquote

from outcome import PROBLEMS, UNREADABLE, Stop, deliver, input_file, run

SECTIONS = {
    "executive-summary": ["Key figures", "Recommendation", "Actions"],
    "analysis": ["Summary", "Question", "Method", "Findings", "Limitations", "Conclusion"],
    "status": ["Summary", "Progress", "Risks", "Next steps"],
    "technical": ["Purpose", "Overview", "Steps", "Troubleshooting"],
}
MAX_WORDS = {"executive-summary": 500}
_PLACEHOLDER = re.compile(
    r"\{\{.*?\}\}|\b(?:TODO|TBD|FIXME|XXX)\b|lorem ipsum|\[(?:Date|Author|Title|Owner|Name)\]",
    re.IGNORECASE,
)
_DATE = re.compile(
    r"^\**(?:Date|Datum|Period|As of)\**:?\**\s*:?\s*\**\s*(.+)$", re.IGNORECASE | re.MULTILINE
)
_DAY = re.compile(
    r"\b\d{4}-\d{2}-\d{2}\b|\b\d{1,2}[./]\d{1,2}[./]\d{4}\b|\b\d{1,2}\.? \w{3,9} \d{4}\b"
    r"|\b\w{3,9} \d{1,2}, \d{4}\b"
)
_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*\s*$")
_LINK = re.compile(
    r"(!?)\[[^\]]*\]\(\s*<?([^()\s<>]+(?:\([^()\s<>]*\)[^()\s<>]*)*)>?(?:\s+\"[^\"]*\")?\s*\)"
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", help="the Markdown file")
    parser.add_argument("--type", choices=sorted(SECTIONS), help="which sections it must have")
    parser.add_argument("--json", action="store_true", help="the problems as JSON")
    given = parser.parse_args()
    file = input_file(given.report)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise Stop(f"{given.report} is not UTF-8 text.", UNREADABLE) from None
    problems = problems_of(text, file.parent, given.type)
    if given.json:
        deliver(json.dumps({"problems": problems}, ensure_ascii=False, indent=2) + "\n", None)
    else:
        deliver("\n".join(problems or ["Nothing was found."]) + "\n", None)
    return PROBLEMS if problems else 0


def problems_of(text: str, directory: Path, kind: str | None) -> list[str]:
    """Return the problems of a report, with line numbers if possible."""
    plain = _without_code(text)
    lines = plain.split("\n")
    sections = _sections(lines)
    problems = []
    if not sections or sections[0][0] != 1:
        problems.append("line 1: the report must start with a title, such as # Sales in May.")
    problems += _section_problems(sections, kind)
    for number, line in enumerate(lines, 1):
        problems += [
            f"line {number}: a placeholder is left: {found[0][:60]}"
            for found in _PLACEHOLDER.finditer(line)
        ]
        problems += [
            f"line {number}: {words}"
            for found in _LINK.finditer(line)
            if (words := _link_problem(found[2], bool(found[1]), directory, sections))
        ]
    dated = _DATE.search(plain)
    if not dated:
        problems.append("There is no date: write a line such as **Date:** 2024-05-01.")
    elif not _DAY.search(dated[1]):
        problems.append(f"The date {dated[1].strip()!r} is not a date such as 2024-05-01.")
    length = len(re.findall(r"\w+", plain))
    limit = MAX_WORDS.get(kind or "")
    if limit and length > limit:
        problems.append(f"It has {length} words; one page holds about {limit}.")
    return problems


def _without_code(text: str) -> str:
    """Return the text with empty lines in place of code, because code contains examples."""
    lines, fence = [], ""
    for line in text.split("\n"):
        mark = re.match(r"\s{0,3}(`{3,}|~{3,})", line)
        if mark and not fence:
            fence = mark[1]
            lines.append("")
        elif fence:
            if mark and mark[1].startswith(fence):
                fence = ""
            lines.append("code" if not mark else "")
        else:
            lines.append(re.sub(r"`[^`]+`", "code", line))
    return "\n".join(lines)


def _sections(lines: list[str]) -> list[tuple[int, str, bool]]:
    """Return (level, heading, has text) of each section.

    The text must come before the next heading of the same level or a higher one.
    """
    found: list[tuple[int, str, int]] = []
    for number, line in enumerate(lines):
        heading = _HEADING.match(line)
        if heading:
            found.append((len(heading[1]), heading[2], number))
    sections = []
    for at, (level, name, start) in enumerate(found):
        end = next((n for other, _, n in found[at + 1 :] if other <= level), len(lines))
        filled = any(
            line.strip() and not _HEADING.match(line) and line.strip() != "---"
            for line in lines[start + 1 : end]
        )
        sections.append((level, name, filled))
    return sections


def _section_problems(sections: list[tuple[int, str, bool]], kind: str | None) -> list[str]:
    names = [name.casefold() for _, name, _ in sections]
    problems = [
        f"The section {wanted!r} is missing."
        for wanted in SECTIONS.get(kind or "", [])
        if not any(name.startswith(wanted.casefold()) for name in names)
    ]
    return problems + [
        f"The section {name!r} is empty." for _, name, filled in sections if not filled
    ]


def _link_problem(
    address: str, picture: bool, directory: Path, sections: list[tuple[int, str, bool]]
) -> str:
    if re.match(r"[a-z][a-z0-9+.-]*:", address, re.IGNORECASE) or address.startswith("//"):
        return "a picture must be a local file: " + address if picture else ""
    path, _, anchor = unquote(address).partition("#")
    if path and not (directory / path).exists():
        return f"{address} does not exist."
    if not path and anchor:
        ids = {re.sub(r"[^\w]+", "-", name.casefold()).strip("-") for _, name, _ in sections}
        if anchor.casefold() not in ids:
            return f"#{anchor} is not a section."
    return ""


if __name__ == "__main__":
    run(main)
