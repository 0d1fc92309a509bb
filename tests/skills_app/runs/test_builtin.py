"""From the prompt to a built-in skill, to its script in the sandbox, to the result."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from agents.models import Epoch, ToolCall
from skills_app.models import SkillUse
from tests.skills_app.builtin.pdfs import plain_file, shown
from tests.support.runs import drive_to_end, make_agent, make_user, script_file, start_run

pytestmark = pytest.mark.django_db(transaction=True)

SALES = "region;amount\nNorth;10,50\nSouth;1,00\nNorth;2,25\n"
SUMS = (
    "python3 /sandbox/skills/csv-analytics/scripts/aggregate_csv.py /sandbox/workspace/sales.csv"
    " --by region --measure sum:amount"
)


def call(tool: str, **given: Any) -> dict[str, Any]:
    return {"name": tool, "input": given}


def played(tmp_path: Path, *calls: dict[str, Any], **fields: Any) -> list[str]:
    """Return the results of calls that an agent with the built-in skills makes in sequence."""
    user = make_user()
    turns = [*({"tool_calls": [each]} for each in calls), {"text": "Done."}]
    model = script_file(tmp_path, turns)
    make_agent(user, model=model, builtin_skills=True, sandbox=True, **fields)
    run = drive_to_end(start_run(user, "What did each region sell?"))
    assert run.status == "completed"
    rows = ToolCall.objects.filter(run=run).order_by("turn")
    assert [row.status for row in rows] == ["succeeded"] * len(calls)
    return [str(json.loads(row.result)) for row in rows]


def test_csv_analytics(tmp_path: Path) -> None:
    loaded, _, sums = played(
        tmp_path,
        call("load_skill", name="csv-analytics"),
        call("write_file", path="sales.csv", content=SALES),
        call("execute", command=SUMS),
    )
    assert "- csv-analytics: " in Epoch.objects.get().head["system"]
    assert "/sandbox/skills/csv-analytics/scripts/aggregate_csv.py" in loaded
    assert "12.75" in sums or "12,75" in sums
    assert set(SkillUse.objects.values_list("kind", "path")) == {
        ("loaded", ""),
        ("file", "scripts/aggregate_csv.py"),
    }


@pytest.mark.slow
def test_pdf_processing(tmp_path: Path) -> None:
    page = shown((72, 700, "Invoice 4711"), (72, 680, "Total 99.50"))
    pdf = base64.b64encode(plain_file([page])).decode()
    loaded, _, text = played(
        tmp_path,
        call("load_skill", name="pdf-processing"),
        call("execute", command=f"printf %s {pdf} | base64 -d > invoice.pdf"),
        call(
            "execute",
            command="python3 /sandbox/skills/pdf-processing/scripts/extract_text.py invoice.pdf",
        ),
    )
    assert "extract_text.py" in loaded
    assert "Invoice 4711" in text
    assert "Total 99.50" in text


def test_without_a_tool_to_load_it_a_skill_is_read_as_a_file(tmp_path: Path) -> None:
    read, _, sums = played(
        tmp_path,
        call("execute_in_sandbox", command="cat /sandbox/skills/csv-analytics/SKILL.md"),
        call("execute_in_sandbox", command=f"printf '{SALES}' > sales.csv"),
        call("execute_in_sandbox", command=SUMS),
        profile="sandbox_only",
    )
    assert "aggregate_csv.py" in read
    assert "12.75" in sums or "12,75" in sums
    kinds = list(SkillUse.objects.order_by("id").values_list("kind", flat=True))
    assert kinds == ["mounted", "file"]
