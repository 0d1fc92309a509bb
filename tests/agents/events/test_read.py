"""Reading the log: the public shapes of events, and their sources."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from agents.events.read import READ_BYTES, read_events, timestamp
from agents.events.sqlite import PAGE_BYTES
from agents.events.stored import StoredEvent
from tests.agents.events.conftest import Followed
from tests.support import site_writer


@pytest.fixture
def run(db: None) -> str:
    site_writer.make_user("olga")
    return site_writer.make_run("olga")


@pytest.mark.both_databases
def test_events_come_in_order_after_a_seq_and_up_to_a_number(run: str) -> None:
    site_writer.append(run, [("text.delta", {"text": str(n)}) for n in range(1, 8)])

    assert [event["seq"] for event in read_events(run)] == [1, 2, 3, 4, 5, 6, 7]
    assert [event["seq"] for event in read_events(run, after=5)] == [6, 7]
    assert [event["seq"] for event in read_events(run, after=1, limit=2)] == [2, 3]
    assert read_events(run, after=7) == []
    assert read_events("nobody") == []


@pytest.mark.both_databases
def test_long_events_come_in_shorter_pages(run: str) -> None:
    half = ("text.completed", {"text": "é" * (READ_BYTES // 2)})
    site_writer.append(
        run, [half, half, half, ("text.completed", {"text": "x" * READ_BYTES}), half]
    )
    seen: list[list[int]] = []
    while events := read_events(run, after=seen[-1][-1] if seen else 0):
        seen.append([event["seq"] for event in events])
    assert seen == [[1, 2], [3, 4], [5]]


@pytest.mark.slow_cases
def test_a_watcher_holds_few_long_events(followed: Followed) -> None:
    run = followed.site.do("make_run", owner="olga")
    half = ("text.completed", {"text": "x" * (PAGE_BYTES // 2)})
    long = ("text.completed", {"text": "x" * PAGE_BYTES})
    followed.site.do("append", run=run, events=[half, half, half, long, half])
    source = followed.make_source()
    source.open()
    try:
        pages, after = [], 0
        while True:
            page = source.read_page(run, after)
            assert page is not None
            pages.append(([event.seq for event in page.events], page.more))
            if not page.more:
                break
            after = page.events[-1].seq
    finally:
        source.close()
    assert pages == [([1, 2], True), ([3, 4], True), ([5], False)]


def test_an_event_has_a_seq_a_type_a_time_and_its_data(run: str) -> None:
    site_writer.append(run, [("tool.completed", {"call_id": None, "output": "é\u202e\x00"})])
    (event,) = read_events(run)
    moment = datetime.fromisoformat(event.pop("ts"))
    assert abs(datetime.now(UTC) - moment) < timedelta(minutes=5)
    assert event == {
        "seq": 1,
        "type": "tool.completed",
        "data": {"call_id": None, "output": "é\u202e\x00"},
    }


@pytest.mark.parametrize(
    ("after", "limit"), [(-1, 10), (2**63, 10), (0, 0), (0, -1)], ids=lambda number: str(number)
)
def test_impossible_numbers_are_errors(run: str, after: int, limit: int) -> None:
    with pytest.raises(ValueError, match=r"after is|limit is"):
        read_events(run, after=after, limit=limit)


@pytest.mark.parametrize(
    "moment",
    [
        "2026-01-31 12:00:00.120000",
        datetime(2026, 1, 31, 12, 0, 0, 120_000, tzinfo=UTC),
        datetime(2026, 1, 31, 14, 0, 0, 120_000, tzinfo=timezone(timedelta(hours=2))),
        "2026-01-31T12:00:00.120000+00:00",
    ],
)
def test_times_are_utc_with_milliseconds(moment: datetime | str) -> None:
    assert timestamp(moment) == "2026-01-31T12:00:00.120Z"
    assert timestamp("2026-01-31 12:00:00") == "2026-01-31T12:00:00.000Z"


def test_a_frame_is_the_stored_text_with_a_head() -> None:
    event = StoredEvent("r1", 7, "text.delta", "2026-01-31T12:00:00.000Z", '{"text":"é \\" ⟨"}')
    assert json.loads(event.frame) == event.as_dict()
    assert json.loads(event.frame) == {
        "run_id": "r1",
        "seq": 7,
        "type": "text.delta",
        "ts": "2026-01-31T12:00:00.000Z",
        "data": {"text": 'é " ⟨'},
    }
