"""A full disk: the answers of every door, the actions that still work, and waiting runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.runs import script_file, wait_until
from tests.support.site_worker import working
from tests.velproject.full_disk_doors import (
    RESERVE,
    STARTING,
    USER,
    Answer,
    Served,
    cancel,
    erase,
    served_on_a_small_disk,
    sign_in,
)

# Small disks need user namespaces, as bubblewrap does.
pytestmark = pytest.mark.bubblewrap

Door = Callable[[Served], Answer]


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A site without free space and without a reserve: each write fails."""
    with served_on_a_small_disk(tmp_path_factory.mktemp("full"), reserve=0) as served:
        served.page("/")
        served.disk.fill()
        yield served


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A site with half of the reserve left."""
    with served_on_a_small_disk(tmp_path_factory.mktemp("short"), RESERVE) as served:
        served.disk.fill(leaving=RESERVE // 2)
        yield served


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_on_a_small_disk(tmp_path_factory.mktemp("shared"), RESERVE) as served:
        yield served


@pytest.fixture
def roomy(shared: Served) -> Iterator[Served]:
    """A site with free space until the test fills its disk."""
    yield shared
    shared.disk.clear()
    run = shared.site.do("make_run", owner=USER)
    api = partial(shared.api, "GET", f"/runs/{run}")
    wait_until(lambda: api().json()["waiting_for_space"] is None, "the web process to see it")


@pytest.mark.slow
@pytest.mark.parametrize("door", [*STARTING, cancel, sign_in], ids=lambda door: door.__name__)
def test_a_failed_write_names_the_full_disk(full: Served, door: Door) -> None:
    answer = door(full)
    assert "The disk of the data directory is full (0 MB left)" in answer.text
    assert answer.status in (0, 200, 507), "200: a page that shows a message"
    assert "database is busy" not in answer.text
    assert "Traceback" not in answer.text


@pytest.mark.slow
def test_people_still_read_on_a_full_disk(full: Served) -> None:
    assert full.api("GET", f"/runs/{full.run}").json()["status"] == "queued"
    assert full.api("GET", "/runs").status_code == 200
    assert full.page(f"/runs/{full.run}/").status_code == 200
    assert full.page("/admin/agents/run/").status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("door", STARTING, ids=lambda door: door.__name__)
def test_no_run_starts_on_the_reserve(short: Served, door: Door) -> None:
    before = short.api("GET", "/runs").json()["results"]
    answer = door(short)
    assert re.search(
        r"The disk of the data directory is full \([34] MB left, and 8 MB are reserved", answer.text
    )
    assert answer.status in (0, 200, 507), "200: a page that shows a message"
    assert short.api("GET", "/runs").json()["results"] == before


def test_readiness_and_refusals_agree(short: Served) -> None:
    ready = short.page("/readyz")
    disk = next(check for check in ready.json()["checks"] if check["name"] == "disk")
    assert (ready.status_code, disk["ok"]) == (503, False)
    assert re.fullmatch(r"[34] MB free at .*", disk["detail"])


@pytest.mark.slow
def test_people_can_decide_cancel_and_erase_on_the_reserve(roomy: Served) -> None:
    asked = roomy.site.do("make_run", owner=USER)
    request = roomy.site.do("ask", run=asked, tool="execute", tool_input={"command": "ls"})
    shown = roomy.api("GET", f"/approvals/{request}").json()
    another = replace(roomy, run=roomy.site.do("make_run", owner=USER))
    roomy.disk.fill(leaving=RESERVE // 8)
    decision = {"decision": "approve", "digest": shown["digest"]}
    decided = roomy.api("POST", f"/approvals/{request}/decide", json=decision)
    assert decided.status_code == 200, decided.text
    assert cancel(another).status == 200
    assert erase(another).status == 204


def test_a_run_waits_for_space_and_continues(roomy: Served, tmp_path: Path) -> None:
    steps = [{"name": "write_file", "input": {"path": "/a.txt", "content": "x"}}]
    turns = [{"text": "", "tool_calls": steps, "delay": 0.2} for _ in range(200)]
    model = script_file(tmp_path, [*turns, {"text": "All done."}])
    run = roomy.site.do("start_scripted", owner=USER, model=model)

    def shown() -> dict:
        return roomy.api("GET", f"/runs/{run}").json()

    with working(roomy.site):
        wait_until(lambda: shown()["usage"]["turns"] > 1, "the first turns")
        assert shown()["waiting_for_space"] is None
        roomy.disk.fill(leaving=RESERVE // 8)
        wait_until(lambda: shown()["status"] == "queued", "the run's driver to let it go")
        # Each process checks the disk once a second.
        wait_until(lambda: shown()["waiting_for_space"], "the web process to see it")
        turn = shown()["usage"]["turns"]
        assert re.fullmatch(
            r"This run waits for disk space: the disk of the data directory is full \(\d MB "
            r"left\)\. It continues automatically when there is room\.",
            shown()["waiting_for_space"],
        )
        assert shown()["waiting_for_space"] in roomy.page(f"/runs/{run}/").text
        summary = roomy.page(f"/runs/{run}/summary/").json()
        assert summary["note"] == shown()["waiting_for_space"]
        assert shown()["usage"]["turns"] == turn
        roomy.disk.clear()
        wait_until(lambda: shown()["usage"]["turns"] > turn, "the next turn")
        wait_until(lambda: shown()["waiting_for_space"] is None, "the web process to see it")
        assert roomy.api("POST", f"/runs/{run}/cancel", json={}).status_code == 200


@pytest.mark.slow
def test_a_run_continues_after_a_disk_without_any_space(roomy: Served, tmp_path: Path) -> None:
    """Its reply cannot be stored, and its lease cannot be renewed."""
    model = script_file(tmp_path, [{"text": "Done.", "delay": 3.0}])
    run = roomy.site.do("start_scripted", owner=USER, model=model)

    def shown(name: str) -> Any:
        return roomy.api("GET", f"/runs/{run}").json()[name]

    with working(roomy.site):
        wait_until(lambda: shown("status") == "running", "the start of the run")
        roomy.disk.fill()
        wait_until(lambda: shown("waiting_for_space"), "the run to wait")
        roomy.disk.clear()
        wait_until(lambda: shown("status") == "completed", "the end of the run")
    assert shown("waiting_for_space") is None, "no run that has ended waits"
