"""Watch a run over its socket, and send messages as its owner."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime

import pytest

from tests.agents.consumers.conftest import Client
from tests.support.site import Site

Open = Callable[..., Client]
DELTA = ("text.delta", {"part_id": "1.0", "text": "a"})


@pytest.mark.slow
@pytest.mark.both_databases
def test_a_watcher_gets_past_events_and_then_new_ones(site: Site, open_client: Open) -> None:
    run = site.do("make_run", owner="olga")
    site.do("append", run=run, events=[("run.started", {"agent": "assistant"}), DELTA])
    client = open_client(run)

    started, delta = client.take(2)
    assert datetime.fromisoformat(started.pop("ts")).tzinfo is not None
    assert started == {
        "run_id": run,
        "seq": 1,
        "type": "run.started",
        "data": {"agent": "assistant"},
    }
    assert delta["seq"] == 2

    site.do("append", run=run, events=[("text.completed", {"text": "é ⟨\u202e⟩"})])
    (completed,) = client.take()
    assert completed["seq"] == 3
    assert completed["data"] == {"text": "é ⟨\u202e⟩"}


def test_a_returning_watcher_gets_missed_events_once(site: Site, open_client: Open) -> None:
    run = site.do("make_run", owner="olga")
    site.do("append", run=run, events=[DELTA] * 3)
    first = open_client(run)
    assert [frame["seq"] for frame in first.take(3)] == [1, 2, 3]
    first.socket.close()
    site.do("append", run=run, events=[DELTA] * 2)

    second = open_client(run, after="3")

    assert [frame["seq"] for frame in second.take(2)] == [4, 5]
    site.do("append", run=run, events=[DELTA])
    assert second.take()[0]["seq"] == 6


def test_the_socket_outlives_a_failure_and_shows_the_continued_run(
    site: Site, open_client: Open
) -> None:
    run = site.do("make_run", owner="olga")
    client = open_client(run)
    site.do("append", run=run, events=[("run.failed", {})], status="failed")
    client.take()
    site.do("append", run=run, events=[("run.resumed", {})], status="queued")

    assert client.take()[0]["type"] == "run.resumed"


@pytest.mark.slow
@pytest.mark.both_databases
def test_many_sockets_of_one_run_all_get_everything(site: Site, open_client: Open) -> None:
    run = site.do("make_run", owner="olga")
    session = site.do("sign_in", user="olga")
    clients = [open_client(run, session=session) for _ in range(10)]
    for _ in range(5):
        site.do("append", run=run, events=[DELTA] * 20)

    for client in clients:
        assert [frame["seq"] for frame in client.take(100)] == list(range(1, 101))


def test_a_message_starts_the_next_run_of_the_thread(site: Site, open_client: Open) -> None:
    run = site.do("make_run", owner="olga")
    client = open_client(run)

    answer = client.ask("message", text="And then?", ref="m1")

    assert answer["type"] == "accepted"
    assert answer["ref"] == "m1"
    following = site.do("run", run=answer["run_id"])
    assert following["text"] == "And then?"
    assert following["thread"] == site.do("run", run=run)["thread"]
    assert following["status"] == "pending"


def test_a_message_that_is_sent_twice_with_one_key_counts_once(
    site: Site, open_client: Open
) -> None:
    client = open_client(site.do("make_run", owner="olga"))

    answers = [client.ask("message", text="Once", key="k-once") for _ in range(2)]

    assert answers[0] == answers[1]


def test_an_owner_cancels(site: Site, open_client: Open) -> None:
    run = site.do("make_run", owner="olga")
    client = open_client(run)

    client.say("cancel", reason="no longer needed")

    event, answer = sorted(client.take(2), key=lambda frame: frame["type"], reverse=True)
    assert answer == {"type": "accepted"}
    assert event["type"] == "run.cancelled"
    assert event["data"] == {"by": "olga", "reason": "no longer needed"}
    assert site.do("run", run=run)["status"] == "cancelled"


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("", "bad_frame"),
        ("{", "bad_frame"),
        ("[]", "bad_frame"),
        ('"cancel"', "bad_frame"),
        ("{}", "bad_frame"),
        ('{"type": "restart"}', "bad_frame"),
        ('{"type": "cancel", "surprise": 1}', "bad_frame"),
        ('{"type": "message"}', "bad_frame"),
        ('{"type": "message", "text": 7}', "bad_frame"),
        ('{"type": "message", "text": "a\\u0000b"}', "bad_frame"),
        ('{"type": "message", "text": "\\ud800"}', "bad_frame"),
        ('{"type": "decide", "approval_id": "x", "decision": "approve"}', "bad_frame"),
        (b"\x00\xff", "bad_frame"),
        ('{"type": "cancel", "x": ' + "[" * 99_999 + "]" * 99_999 + "}", "bad_frame"),
        ('{"type": "message", "text": "' + "ä" * 300_000 + '"}', "frame_too_large"),
        ('{"type": "' + "a" * 400_000 + '"}', "bad_frame"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_frame_that_is_not_understood_gets_an_error_and_the_socket_lives_on(
    site: Site, open_client: Open, frame: str | bytes, code: str
) -> None:
    run = site.do("make_run", owner="olga")
    client = open_client(run)

    client.socket.send(frame)

    answer = client.answer()
    assert answer["type"] == "error"
    assert answer["code"] == code
    assert len(answer["message"]) < 500
    assert client.ask("cancel") == {"type": "accepted"}


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "9" * 30, "9" * 5000])
def test_an_input_with_a_number_that_no_database_takes_is_refused(
    site: Site, open_client: Open, number: str
) -> None:
    run = site.do("make_run", owner="olga")
    request = site.do("ask", run=run, tool="execute", tool_input={"n": 1})
    digest = site.do("approval", request=request)["digest"]
    client = open_client(run)
    frame = {"type": "decide", "csrf": client.csrf, "approval_id": request, "digest": digest}
    text = json.dumps({**frame, "decision": "edit"})

    client.socket.send(f'{text[:-1]}, "input": {{"n": [{number}]}}}}')

    assert client.answer()["code"] == "bad_frame"
    assert site.do("approval", request=request)["status"] == "pending"


def test_a_refused_service_is_an_error_with_its_code(site: Site, open_client: Open) -> None:
    client = open_client(site.do("make_run", owner="olga"))

    answer = client.ask("message", text="   ", ref="m")

    assert answer["type"] == "error"
    assert answer["code"] == "invalid"
    assert answer["ref"] == "m"


def test_a_run_that_is_deleted_closes_its_sockets(site: Site, open_client: Open) -> None:
    run = site.do("make_run", owner="olga")
    client = open_client(run)
    site.do("append", run=run, events=[DELTA])
    client.take()

    site.do("delete_run", run=run)

    assert client.close_code() == 4404
