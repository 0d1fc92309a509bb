"""The tools that read the memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents.models import ToolCall
from memory.limits import MAX_FILE_BYTES, PAGE_CHARACTERS
from memory.middleware import _page
from tests.support.memory import remembered, skilled
from tests.support.runs import drive_to_end, make_agent, make_user, script_file, start_run

pytestmark = pytest.mark.django_db(transaction=True)


def made(tmp_path: Path, *calls: tuple[str, dict[str, Any]], **files: str) -> list[ToolCall]:
    user = make_user()
    turn = {"tool_calls": [{"name": name, "input": given} for name, given in calls]}
    agent = make_agent(user, model=script_file(tmp_path, [turn, {"text": "Done."}]))
    remembered(agent, **files)
    skilled(agent)
    run = drive_to_end(start_run(user))
    return list(ToolCall.objects.filter(run=run).order_by("position"))


def test_listing(tmp_path: Path) -> None:
    given = ["/", "", ".", "/memory", "/memory/knowledge/", "knowledge", "skills/", "Knowledge"]
    calls = made(
        tmp_path,
        ("list_memory", {}),
        *(("list_memory", {"directory": name}) for name in given),
        notes="x",
    )
    *listed, wrong = calls
    shown = [json.loads(str(call.result_content)) for call in listed]
    knowledge, skills = ["knowledge/notes.md"], ["skills/weekly-report.md"]
    everything = ["AGENTS.md", "tools.json", *knowledge, *skills]
    assert shown == [knowledge, *[everything] * 4, knowledge, knowledge, skills]
    assert (wrong.status, wrong.code) == ("failed", "not_found")
    assert "knowledge" in wrong.result


@pytest.mark.slow
@pytest.mark.both_databases
@pytest.mark.parametrize(
    "text",
    ["ä" * (MAX_FILE_BYTES // 2), "One line of many.\n" * 5_000],
    ids=["one line", "lines"],
)
def test_a_file_as_large_as_one_may_be_is_read_in_pages(tmp_path: Path, text: str) -> None:
    reads: list[tuple[str, dict[str, Any]]] = []
    offset, pages = 0, []
    while offset < len(text):
        page = _page(text, offset)
        body, _, note = str(page.content).rpartition("\n")
        pages.append(body)
        reads.append(("read_memory", {"path": "/memory/knowledge/notes.md", "offset": offset}))
        offset += len(body)
        assert len(body) <= PAGE_CHARACTERS
        assert (f"Continue: offset={offset}." in note) == (offset < len(text))
    assert "".join(pages) == text
    assert 3 <= len(pages) <= 7
    *calls, beyond = made(
        tmp_path,
        *reads,
        ("read_memory", {"path": "knowledge/notes.md", "offset": len(text)}),
        notes=text,
    )
    assert [str(call.result_content).rpartition("\n")[0] for call in calls] == pages
    assert beyond.code == "not_found"


@pytest.mark.slow_cases
@pytest.mark.parametrize("path", ["../notes.md", "/etc/passwd", "knowledge/../AGENTS.md", "", "x"])
def test_reading_an_invalid_path_is_an_error(tmp_path: Path, path: str) -> None:
    [call] = made(tmp_path, ("read_memory", {"path": path}))
    assert (call.status, call.code) == ("failed", "invalid_path")
