"""`vel skills search`: best first, JSON lines, success without results, other directories."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.skills import write_skill
from tests.velproject.command import Vel


@pytest.fixture
def place() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="vel-skills-", dir="/var/tmp"))
    yield made
    shutil.rmtree(made)


def test_search(vel: Vel, place: Path) -> None:
    done = vel("skills", "search", "who needs to sign off on a 12k purchase?", "--json")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert list(rows[0]) == ["name", "score", "description", "trust", "source"]
    assert rows[0]["name"] == "decision-workflow"
    assert (rows[0]["trust"], rows[0]["source"]) == ("built-in", "built-in")
    assert rows[0]["score"] >= 0.2
    assert [row["score"] for row in rows] == sorted((row["score"] for row in rows), reverse=True)

    done = vel("skills", "search", "", "--json")
    everything = [json.loads(line)["name"] for line in done.stdout.splitlines()]
    assert everything == ["csv-analytics", "data-query", "decision-workflow", "pdf-processing",
                          "reporting", "research"]  # fmt: skip

    done = vel("skills", "search", "zymurgy quokka xylophone", "--json")
    assert (done.returncode, done.stdout) == (0, "")
    done = vel("skills", "search", "zymurgy quokka \x1b[2Jxylophone")
    assert done.returncode == 0
    assert "No skill matches" in done.stderr
    assert "\x1b" not in done.stderr

    write_skill(place, "roses", description="Prunes \u202eroses.")
    write_skill(place, "research", description="Prunes roses too.")
    (write_skill(place, "broken") / "SKILL.md").write_text("no head")
    done = vel("skills", "search", "prune my roses", "--skills", str(place), "--json")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert "broken" in done.stderr
    assert "research is taken" in done.stderr
    assert not [row for row in rows if row["name"] == "research" and row["trust"] == "local"]

    done = vel("skills", "search", "roses", "--agent", "nobody")
    assert done.returncode != 0
    assert "nobody" in done.stderr
