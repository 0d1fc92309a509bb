#!/usr/bin/env python3
"""Add a source to the log and print its id, such as S3. It creates the log if necessary.

Example:
  log_source.py --log sources.json --title "Annual report" --where /sandbox/user_uploads/r.txt \\
    --kind file --accessed 2024-05-01 --confidence high --quote "Revenue was 12 million"
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from outcome import PROBLEMS, WRONG_CALL, Stop, run
from source_log import CONFIDENCE, KINDS, problems_of, read_log


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--log", required=True, help="the .json file")
    parser.add_argument("--title", required=True)
    parser.add_argument("--where", required=True, help="a URL, a path, a person")
    parser.add_argument("--kind", choices=KINDS, default="other")
    parser.add_argument("--accessed", required=True, help="the day, such as 2024-05-01")
    parser.add_argument("--confidence", choices=CONFIDENCE, default="medium")
    parser.add_argument("--author", default="")
    parser.add_argument("--published", default="")
    parser.add_argument("--quote", default="", help="the words that support the claim")
    given = parser.parse_args()
    log = Path(given.log)
    entries = read_log(given.log) if log.exists() else []
    entry = {key: value for key, value in vars(given).items() if key != "log" and value}
    numbers = [
        int(str(each.get("id", "S0"))[1:] or 0)
        for each in entries
        if str(each.get("id", ""))[1:].isdigit()
    ]
    entry = {"id": f"S{max(numbers, default=0) + 1}", **entry}
    problems = problems_of([entry])
    if problems:
        print("\n".join(problems), file=sys.stderr)
        return PROBLEMS
    for known in entries:
        if (known.get("where"), known.get("quote", "")) == (given.where, given.quote):
            print(known["id"])
            print(f"note: it is in the log already, as {known['id']}", file=sys.stderr)
            return 0
    _write(log, [*entries, entry])
    print(entry["id"])
    return 0


def _write(log: Path, entries: list[dict]) -> None:
    """Write the log in one step, because another process may be reading it."""
    text = json.dumps({"sources": entries}, ensure_ascii=False, indent=2) + "\n"
    new = log.with_name(f".{log.name}.new")
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(text, encoding="utf-8")
        os.replace(new, log)
    except OSError as error:
        raise Stop(
            f"{log} cannot be written ({error.strerror}). Keep it in /sandbox/shared/research.",
            WRONG_CALL,
        ) from None


if __name__ == "__main__":
    run(main)
