"""The labelled texts in this directory: JSON Lines with `kind` and `text`."""

from __future__ import annotations

import json
from pathlib import Path

from text_scanner import scan

_HERE = Path(__file__).parent


def texts(name: str) -> list[str]:
    """The texts of `attacks` or `benign`."""
    lines = (_HERE / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["text"] for line in lines]


def held_out() -> list[tuple[str, bool]]:
    """(text, whether it is an attack) of the held-out set, which is not used for training."""
    lines = (_HERE / "held_out.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [(row["text"], row["label"] == "attack") for row in rows]


def alarmed(content: str) -> bool:
    """Whether the reviewer gets a warning or danger, and not only notes."""
    return any(finding.severity != "note" for finding in scan(content))
