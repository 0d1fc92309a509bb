"""Follow a run and its subagents over one socket."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.agents.consumers.conftest import Client
from tests.support.site import Site

Open = Callable[..., Client]
DELTA = ("text.delta", {"part_id": "1.0", "text": "a"})


def at(run: str, query: str) -> str:
    return f"/ws/runs/{run}/?{query}"


def until(client: Client, run: str, kind: str) -> list[dict[str, Any]]:
    frames: list[dict[str, Any]] = []
    while not frames or (frames[-1]["run_id"], frames[-1]["type"]) != (run, kind):
        frames += client.take()
    return frames


@pytest.mark.both_databases
def test_one_socket_reports_all_runs(site: Site, open_client: Open) -> None:
    run = site.do("make_run", owner="olga")
    child = site.do("make_child", parent=run)
    client = open_client(run, path=at(run, "tree=all"))
    site.do("append", run=child, events=[DELTA])
    frames = until(client, child, "text.delta")
    assert [(frame["run_id"], frame["seq"]) for frame in frames] == [(run, 1), (child, 1)]
    later = site.do("make_child", parent=child)
    site.do("append", run=later, events=[DELTA])
    assert until(client, later, "text.delta")[0]["type"] == "subagent.started"


def test_by_default_a_socket_reports_its_own_run(site: Site, open_client: Open) -> None:
    run = site.do("make_run", owner="olga")
    child = site.do("make_child", parent=run)
    site.do("append", run=child, events=[DELTA])
    client = open_client(run)
    client.take()
    site.do("append", run=run, events=[DELTA])
    assert client.take()[0]["run_id"] == run


def test_the_brief_form_has_no_text_of_subagents(site: Site, open_client: Open) -> None:
    run = site.do("make_run", owner="olga")
    child = site.do("make_child", parent=run)
    site.do("append", run=child, events=[("run.started", {}), DELTA, DELTA])
    site.do("ask", run=child, tool="execute", tool_input={"command": "ls"})
    client = open_client(run, path=at(run, "tree=brief"))
    kinds = [frame["type"] for frame in until(client, child, "run.suspended")]
    assert kinds == ["subagent.started", "run.started", "approval.requested", "run.suspended"]


@pytest.mark.both_databases
def test_a_returning_watcher_sends_its_position_in_each_run(site: Site, open_client: Open) -> None:
    run = site.do("make_run", owner="olga")
    child = site.do("make_child", parent=run)
    site.do("append", run=child, events=[DELTA, DELTA, DELTA])
    client = open_client(run, path=at(run, f"tree=all&after=1&at={child}:2"))
    assert [(frame["run_id"], frame["seq"]) for frame in client.take()] == [(child, 3)]


@pytest.mark.parametrize("query", ["tree=yes", "tree=all&at=x", "tree=all&at=x:-1", "at=x:"])
def test_invalid_parameters_are_refused(site: Site, open_client: Open, query: str) -> None:
    run = site.do("make_run", owner="olga")
    assert open_client(run, path=at(run, query)).close_code() == 4400


def test_other_users_cannot_follow_a_family(site: Site, open_client: Open) -> None:
    run = site.do("make_run", owner="olga")
    child = site.do("make_child", parent=run)
    own = site.do("make_run", owner="peter")
    for asked in (run, child):
        path = at(asked, "tree=all")
        assert open_client(asked, user="peter", path=path).close_code() == 4404
    site.do("append", run=child, events=[DELTA])
    client = open_client(own, user="peter", path=at(own, f"tree=all&at={child}:0"))
    site.do("append", run=own, events=[DELTA])
    assert client.take()[0]["run_id"] == own


def test_an_approver_sees_only_runs_of_a_family_with_requests(
    site: Site, open_client: Open
) -> None:
    run = site.do("make_run", owner="olga")
    asking, quiet = (site.do("make_child", parent=run, task=task) for task in "ab")
    site.do("append", run=quiet, events=[DELTA])
    site.do("ask", run=asking, tool="execute", tool_input={"command": "ls"})
    assert open_client(run, user="ada", path=at(run, "tree=all")).close_code() == 4404
    site.do("ask", run=run, tool="execute", tool_input={"command": "ls"})
    client = open_client(run, user="ada", path=at(run, "tree=all"))
    site.do("end", run=quiet, status="completed", events=[])
    site.do("end", run=asking, status="completed", events=[])
    # All events of a subagent come before the event of its end.
    frames = until(client, run, "subagent.finished")
    frames += until(client, run, "subagent.finished")
    assert {frame["run_id"] for frame in frames} == {run, asking}


def test_subagents_are_not_spoken_to(site: Site, open_client: Open) -> None:
    run = site.do("make_run", owner="olga")
    child = site.do("make_child", parent=run)
    answer = open_client(child).ask("message", text="Do something else")
    assert (answer["type"], answer["code"]) == ("error", "subagent")
    request = site.do("ask", run=child, tool="execute", tool_input={"command": "ls"})
    above = open_client(run, path=at(run, "tree=all"))
    decided = above.ask("decide", approval_id=request, digest="x", decision="approve")
    assert decided["code"] == "not_found", "it is decided on its own socket"
