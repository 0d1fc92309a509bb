"""Read a run's event log over HTTP."""

from __future__ import annotations

import pytest
from django.db import transaction

from agents.events.append import append_events
from agents.events.catalogue.messages import TextDelta
from agents.models import Run, RunEvent
from tests.agents.api.rows import (
    ask_approval,
    client_for,
    make_agent,
    make_run,
    make_user,
    problem_of,
)

pytestmark = pytest.mark.django_db


def run_with_events(count: int) -> Run:
    make_agent()
    run = make_run(make_user("ann"))
    with transaction.atomic():
        append_events(run.id, [TextDelta(part_id="p1", text=str(n)) for n in range(count)])
    return run


def test_events_come_in_order_after_a_seq() -> None:
    run = run_with_events(5)
    client = client_for(run.owner)
    page = client.get(f"/api/v1/runs/{run.id}/events?after=1&limit=3").json()
    assert [event["seq"] for event in page["results"]] == [2, 3, 4]
    assert page["next_after"] == 4
    first = page["results"][0]
    assert set(first) == {"seq", "type", "ts", "data"}
    assert (first["type"], first["data"]["text"]) == ("text.delta", "1")
    assert first["ts"].endswith("Z")
    assert client.get(f"/api/v1/runs/{run.id}/events?after=5").json() == {
        "results": [],
        "next_after": 5,
    }


def test_a_page_has_a_hundred_events_unless_asked() -> None:
    run = run_with_events(101)
    page = client_for(run.owner).get(f"/api/v1/runs/{run.id}/events").json()
    assert (len(page["results"]), page["next_after"]) == (100, 100)


@pytest.mark.parametrize(
    "query",
    ["after=-1", "after=x", "after=1e3", f"after={2**63}", "after=%00", "limit=0", "limit=1001",
     "limit=-1", "limit=", f"limit={'9' * 5000}", "before=1"],
)  # fmt: skip
def test_bad_numbers_are_refused(query: str) -> None:
    run = run_with_events(1)
    response = client_for(run.owner).get(f"/api/v1/runs/{run.id}/events?{query}")
    assert response.status_code == 400
    assert list(problem_of(response)["errors"]) == [query.split("=")[0]]


@pytest.mark.both_databases
def test_an_approver_follows_the_events_of_a_run_that_asks_and_of_no_other() -> None:
    run = run_with_events(1)
    client = client_for(make_user("eve", "approve_toolcall"))
    assert client.get(f"/api/v1/runs/{run.id}/events").status_code == 404
    ask_approval(run)
    assert client.get(f"/api/v1/runs/{run.id}/events").status_code == 200


@pytest.mark.both_databases
def test_a_lone_surrogate_in_an_event_goes_out_as_an_escape() -> None:
    run = run_with_events(1)
    RunEvent.objects.filter(run=run).update(data=r'{"text":"a\ud800b"}')
    response = client_for(run.owner).get(f"/api/v1/runs/{run.id}/events")
    assert response.status_code == 200
    assert rb"a\ud800b" in response.content
