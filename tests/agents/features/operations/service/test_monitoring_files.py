"""The page, the dashboard and the alert rules name exactly the metrics that exist."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from agents.selectors.metrics import gauges
from agents.telemetry.counters import FAMILIES

pytestmark = pytest.mark.django_db

OPERATIONS = Path(__file__).parents[5] / "docs/operations"
RULES = OPERATIONS / "prometheus/vel-alerts.yml"
PROMTOOL = shutil.which("promtool")
NAME = re.compile(r"\bvel_[a-z_]+")


def existing() -> set[str]:
    return {gauge.name for gauge in gauges()} | set(FAMILIES)


def samples() -> set[str]:
    """Return the names of samples: histograms have no sample with their own name."""
    histograms = {name for name, family in FAMILIES.items() if family.buckets}
    parts = {f"{name}_{part}" for name in histograms for part in ("bucket", "sum", "count")}
    return (existing() - histograms) | parts


def rows() -> dict[str, list[str]]:
    lines = (OPERATIONS / "monitoring.md").read_text().splitlines()
    found = [[cell.strip() for cell in line.split(" | ")] for line in lines if "| `vel_" in line]
    return {cells[0].strip("|` "): cells for cells in found}


def expressions() -> list[str]:
    dashboard = json.loads((OPERATIONS / "prometheus/vel-dashboard.json").read_text())
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


def test_the_page_explains_each_metric() -> None:
    found = rows()
    assert set(found) == existing()
    for name, cells in found.items():
        assert len(cells) >= 4, name
        assert all(cells[-3:]), name


def test_the_dashboard_shows_each_metric_and_no_other() -> None:
    named = {name for text in expressions() for name in NAME.findall(text)}
    assert named <= samples()
    shown = {re.sub(r"_(bucket|sum|count)$", "", name) for name in named}
    assert shown == existing()


def test_the_rules_name_only_metrics_that_exist() -> None:
    [group] = yaml.safe_load(RULES.read_text())["groups"]
    assert {name for rule in group["rules"] for name in NAME.findall(rule["expr"])} <= samples()
    page = (OPERATIONS / "monitoring.md").read_text()
    for rule in group["rules"]:
        assert f"| `{rule['alert']}` | {rule['labels']['severity']} |" in page
    assert page.count("| `Vel") == len(group["rules"])


@pytest.mark.skipif(PROMTOOL is None, reason="needs promtool")
def test_promtool_accepts_the_rules_and_the_expressions(tmp_path: Path) -> None:
    panels = tmp_path / "panels.yml"
    records = [{"record": f"panel:{n}", "expr": text} for n, text in enumerate(expressions())]
    panels.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": records}]}))
    done = subprocess.run(
        ["promtool", "check", "rules", str(RULES), str(panels)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
