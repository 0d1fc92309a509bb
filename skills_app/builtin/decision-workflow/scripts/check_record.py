#!/usr/bin/env python3
"""Check a decision record: its form, and that its outcome follows from its policy.

Exit code 0: correct. 1: problems, one on each line.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from evaluate_request import make_record
from outcome import PROBLEMS, deliver, run
from policy import read_policy
from strict_json import AGAIN, given_again, read_json

SCHEMA = Path(__file__).resolve().parent.parent / "references" / "decision-record.schema.json"
_TYPES = {"object": dict, "array": list, "string": str, "boolean": bool}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("record", help="the .json file")
    parser.add_argument("--policy", help="evaluate the request again with this policy and compare")
    parser.add_argument("--json", action="store_true", help="the problems as JSON")
    given = parser.parse_args()
    record = read_json(given.record, once=False)
    problems = violations(record, json.loads(SCHEMA.read_text(encoding="utf-8")))
    request = record.get("request") if isinstance(record, dict) else None
    again = set(given_again(record)) - {f"request.{name}" for name in given_again(request)}
    problems += [f"{name}: is {AGAIN}." for name in sorted(again)]
    if given.policy and not problems:
        problems = _differences(record, given.policy)
    if given.json:
        deliver(json.dumps({"problems": problems}, ensure_ascii=False, indent=2) + "\n", None)
    else:
        deliver("\n".join(problems or ["The record is right."]) + "\n", None)
    return PROBLEMS if problems else 0


def _differences(record: dict[str, Any], policy_path: str) -> list[str]:
    policy = read_policy(policy_path)
    if policy.sha256 != record["policy"]["sha256"]:
        return ["policy.sha256: the policy is not the one that the record was made with."]
    again = make_record(policy, record["request"], record["decided_at"])
    return [
        f"{key}: not what the policy gives for this request."
        for key in again
        if record[key] != again[key]
    ]


def violations(value: Any, schema: dict[str, Any], path: str = "") -> list[str]:
    """Return the violations of `schema` in `value`. A small part of JSON Schema is supported."""
    where = path or "record"
    kind = schema.get("type")
    if kind and not isinstance(value, _TYPES[kind]):
        return [f"{where}: must be of type {kind}."]
    if "const" in schema and value != schema["const"]:
        return [f"{where}: must be {schema['const']!r}."]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{where}: must be one of {', '.join(schema['enum'])}."]
    found: list[str] = []
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            found.append(f"{where}: must not be empty.")
        if "pattern" in schema and not re.search(schema["pattern"], value):
            found.append(f"{where}: {value!r} does not have the form {schema['pattern']}.")
    elif isinstance(value, dict):
        known = schema.get("properties", {})
        found += [
            f"{where}: {key} is missing." for key in schema.get("required", []) if key not in value
        ]
        for key, inner in value.items():
            below = f"{path}.{key}" if path else key
            if key in known:
                found += violations(inner, known[key], below)
            elif schema.get("additionalProperties") is False:
                found.append(f"{below}: is not part of a record.")
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            found += violations(inner, schema.get("items", {}), f"{where}[{at}]")
    return found


if __name__ == "__main__":
    run(main)
