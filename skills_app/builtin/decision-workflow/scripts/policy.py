"""Read a policy from a JSON file, or from the tables of a Markdown file."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conditions import Comparison, parse
from outcome import UNREADABLE, Stop, input_file
from strict_json import read_json

OUTCOMES = ("approve", "needs_approval", "escalate", "deny")
"""All outcomes, from the mildest to the strictest."""
RISKS = ("low", "medium", "high")


@dataclass(frozen=True)
class Rule:
    name: str
    condition: str
    comparisons: tuple[Comparison, ...]
    outcome: str
    approvers: tuple[str, ...]
    risk: str
    reason: str


@dataclass(frozen=True)
class Policy:
    name: str
    version: str
    type: str
    required: tuple[str, ...]
    rules: tuple[Rule, ...]
    sha256: str


def read_policy(path: str) -> Policy:
    """Return the policy in a .json or .md file. Raises `Stop` with the missing parts of a rule."""
    file = input_file(path)
    raw = file.read_bytes()
    try:
        text = raw.decode("utf-8-sig")
        given = (
            _from_markdown(text, file)
            if file.suffix.lower() in (".md", ".markdown")
            else read_json(path)
        )
    except UnicodeDecodeError:
        raise Stop(f"{path} is not UTF-8 text.", UNREADABLE) from None
    if (
        not isinstance(given, dict)
        or not isinstance(given.get("rules"), list)
        or not given["rules"]
    ):
        raise Stop(f"{path} has no rules. See references/policy-format.md.", UNREADABLE)
    return Policy(
        name=str(given.get("policy") or file.stem),
        version=str(given.get("version") or "unversioned"),
        type=str(given.get("type") or "request"),
        required=tuple(str(each) for each in given.get("required", [])),
        rules=tuple(_rule(each, number) for number, each in enumerate(given["rules"], 1)),
        sha256=hashlib.sha256(raw).hexdigest(),
    )


def _rule(given: Any, number: int) -> Rule:
    if not isinstance(given, dict):
        raise Stop(f"Rule {number} of the policy is not an object.", UNREADABLE)
    name = str(given.get("rule") or f"rule {number}")
    condition, outcome = str(given.get("when") or ""), str(given.get("outcome") or "")
    outcome = outcome.strip().lower().replace(" ", "_")
    if not condition or outcome not in OUTCOMES:
        raise Stop(
            f"The policy's {name!r} needs `when` and an `outcome` out of {', '.join(OUTCOMES)}.",
            UNREADABLE,
        )
    listed = given.get("approvers") or []
    if isinstance(listed, str):
        listed = re.split(r"\s*(?:\+|,|;)\s*", listed)
    approvers = tuple(str(each).strip() for each in listed if str(each).strip(" -—"))
    if outcome == "needs_approval" and not approvers:
        raise Stop(f"The policy's {name!r} needs approval, but names no approvers.", UNREADABLE)
    risk = str(given.get("risk") or "medium").lower()
    if risk not in RISKS:
        raise Stop(
            f"The policy's {name!r} has the risk {risk!r}: use {', '.join(RISKS)}.", UNREADABLE
        )
    reason = str(given.get("reason") or "")
    return Rule(name, condition, parse(condition), outcome, approvers, risk, reason)


def _from_markdown(text: str, file: Path) -> dict[str, Any]:
    """Return the policy in a Markdown text, in the form of a JSON policy.

    Lines such as `Version: 3` are its fields, and tables with the columns of a rule are its rules.
    """
    given: dict[str, Any] = {"rules": []}
    columns: list[str] = []
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped.startswith("|"):
            columns = []
            found = re.fullmatch(
                r"\**(Policy|Version|Type|Required)\**:\**\s*(.+)", stripped, re.IGNORECASE
            )
            if found:
                given[found[1].lower()] = found[2].strip()
            continue
        cells = [
            cell.strip().replace("\\|", "|").strip("`")
            for cell in re.split(r"(?<!\\)\|", stripped.strip("|"))
        ]
        if all(re.fullmatch(r":?-+:?", cell) for cell in cells):
            continue
        if not columns:
            columns = [cell.lower() for cell in cells]
            if len(set(columns)) < len(columns):
                raise Stop(f"A table of {file} has two columns with the same name.", UNREADABLE)
            continue
        if {"when", "outcome"} <= set(columns):
            given["rules"].append(dict(zip(columns, cells, strict=False)))
    if isinstance(given.get("required"), str):
        given["required"] = [each.strip() for each in given["required"].split(",")]
    if not given["rules"]:
        raise Stop(
            f"{file} has no table with the columns `when` and `outcome`. See "
            "references/policy-format.md.",
            UNREADABLE,
        )
    return given
