"""A run's events over HTTP: from any point, live, and only for users who may read the run."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Any

import pytest

from agents.settings import LimitSettings
from tests.support.runs import wait_until
from tests.support.site import Site
from tests.support.sse import Stream

DELTA = ("text.delta", {"part_id": "1.0", "text": "a"})
DONE: list[tuple[str, dict[str, Any]]] = [("run.completed", {"finish_reason": "end_turn"})]


@pytest.fixture(scope="module")
def token(site: Site) -> str:
    return str(site.do("make_token", user="olga", scopes=["read"]))


def seqs(events: list[dict[str, Any]]) -> list[int]:
    return [event["seq"] for event in events]


@pytest.mark.slow
@pytest.mark.both_databases
def test_a_watcher_gets_past_and_new_events_until_the_end(site: Site, token: str) -> None:
    run = site.do("make_run", owner="olga")
    site.do("append", run=run, events=[("run.started", {"agent": "assistant"}), DELTA])
    with Stream(site, f"runs/{run}/events/stream", token=token) as stream:
        assert stream.status == 200
        assert stream.response.headers["content-type"] == "text/event-stream"
        assert stream.response.headers["x-accel-buffering"] == "no"
        frames = stream.frames()
        assert next(frames) == {"retry": "2000"}
        started, delta = next(frames), next(frames)
        assert started["id"] == "1"
        event = json.loads(started["data"])
        assert (event["run_id"], event["type"]) == (run, "run.started")
        assert event["data"] == {"agent": "assistant"}
        assert delta["id"] == "2"

        said = {"part_id": "1.0", "text": "é\n\r\u2028 data: x"}
        site.do("append", run=run, events=[("text.completed", said)])
        assert json.loads(next(frames)["data"])["data"] == said
        site.do("append", run=run, events=DONE, status="completed")
        assert next(frames)["id"] == "4"
        assert list(frames) == [{"event": "end", "data": "{}"}]


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("query", "header"), [("after=3", None), ("", "3"), ("after=1", "3"), ("after=0", "3")]
)
def test_a_returning_watcher_gets_missed_events_once(
    site: Site, token: str, query: str, header: str | None
) -> None:
    run = site.do("make_run", owner="olga")
    site.do("append", run=run, events=[DELTA] * 5)
    headers = {"Last-Event-ID": header} if header else {}

    path = f"runs/{run}/events/stream?{query}"
    with Stream(site, path, token=token, headers=headers) as stream:
        assert seqs(stream.take(2)) == [4, 5]


def test_a_watcher_with_all_events_of_an_ended_run_is_told_to_stop(site: Site, token: str) -> None:
    run = site.do("make_run", owner="olga")
    site.do("append", run=run, events=[DELTA, *DONE], status="completed")

    with Stream(site, f"runs/{run}/events/stream?after=1", token=token) as stream:
        assert seqs(stream.take(1)) == [2]
    headers = {"Last-Event-ID": "2"}
    with Stream(site, f"runs/{run}/events/stream", token=token, headers=headers) as stream:
        assert stream.status == 204


@pytest.mark.both_databases
def test_events_of_subagents_do_not_move_the_position_in_a_tree(site: Site, token: str) -> None:
    run = site.do("make_run", owner="olga")
    child = site.do("make_child", parent=run)
    ended = [("text.completed", {"part_id": "1.0", "text": "x"})]
    site.do("end", run=child, status="completed", events=ended)
    site.do("append", run=run, events=DONE, status="completed")

    with Stream(site, f"runs/{run}/events/stream?tree=all", token=token) as stream:
        frames = [frame for frame in stream.frames() if "data" in frame and "event" not in frame]
    told = [(json.loads(frame["data"])["run_id"], frame.get("id")) for frame in frames]
    assert (child, None) in told
    assert [seq for of, seq in told if of == run] == [str(n + 1) for n in range(len(told) - 2)]

    path = f"runs/{run}/events/stream?tree=all&at={child}:1"
    with Stream(site, path, token=token) as stream:
        again = [event for event in stream.events() if event["run_id"] == child]
    assert seqs(again) == [2]


@pytest.mark.parametrize(
    ("query", "headers", "code"),
    [
        ("after=-1", {}, "invalid"),
        ("after=x", {}, "invalid"),
        ("after=1&after=2", {}, "invalid"),
        ("tree=some", {}, "invalid"),
        ("at=x", {}, "invalid"),
        ("at=a:1,", {}, "invalid"),
        ("at=a:99999999999999999999", {}, "invalid"),
        ("surprise=1", {}, "invalid"),
        ("", {"Last-Event-ID": "seven"}, "invalid"),
        ("", {"Last-Event-ID": "9223372036854775808"}, "invalid"),
    ],
)
def test_invalid_parameters_are_refused(
    site: Site, token: str, query: str, headers: dict[str, str], code: str
) -> None:
    run = site.do("make_run", owner="olga")
    path = f"runs/{run}/events/stream?{query}"
    with Stream(site, path, token=token, headers=headers) as stream:
        assert stream.status == 400
        assert stream.problem()["code"] == code


def test_strangers_get_not_found(site: Site, token: str) -> None:
    run = site.do("make_run", owner="peter")
    path = f"runs/{run}/events/stream"
    with Stream(site, path, token=token) as stream:
        assert (stream.status, stream.problem()["code"]) == (404, "not_found")
    with Stream(site, path) as stream:
        assert (stream.status, stream.problem()["code"]) == (401, "not_authenticated")
    narrow = site.do("make_token", user="peter", scopes=["run"])
    with Stream(site, path, token=narrow) as stream:
        assert (stream.status, stream.problem()["code"]) == (403, "insufficient_scope")


@pytest.mark.slow
def test_silent_streams_end_soon_after_the_right_to_them(site: Site) -> None:
    site.do("make_user", name="thea")
    runs = {why: site.do("make_run", owner="thea") for why in ("revoked", "out", "deleted")}
    for run in runs.values():
        site.do("append", run=run, events=[DELTA])
    token = site.do("make_token", user="thea", scopes=["read"])
    session, other = site.do("sign_in", user="thea"), site.do("sign_in", user="thea")
    with ExitStack() as closing:
        streams = {
            why: closing.enter_context(Stream(site, f"runs/{run}/events/stream", **key))
            for (why, run), key in zip(
                runs.items(),
                ({"token": token}, {"session": session}, {"session": other}),
                strict=True,
            )
        }
        for stream in streams.values():
            stream.take(1)
        site.do("revoke_tokens", user="thea")
        site.do("sign_out", session=session)
        site.do("delete_run", run=runs["deleted"])

        codes = {}
        for why, stream in streams.items():
            last = stream.last()
            assert last["event"] == "closed"
            codes[why] = json.loads(last["data"])["code"]
    assert codes == {
        "revoked": "authentication_failed",
        "out": "not_authenticated",
        "deleted": "not_found",
    }


@pytest.mark.slow
def test_silence_is_filled_and_streams_are_limited(site: Site) -> None:
    site.do("make_user", name="greta")
    greedy = site.do("make_token", user="greta", scopes=["read"])
    run = site.do("make_run", owner="greta")
    limit = LimitSettings().STREAMS_PER_USER
    path = f"runs/{run}/events/stream"
    streams = [Stream(site, path, token=greedy) for _ in range(limit)]
    with Stream(site, path, token=greedy) as stream:
        assert (stream.status, stream.problem()["code"]) == (429, "too_many_streams")
    frames = streams[0].frames()
    assert next(frames) == {"retry": "2000"}
    assert next(frames) == {"": "ping"}
    for stream in streams:
        stream.__exit__(None, None, None)

    # The server notices the closed connection.
    def is_given_back() -> bool:
        with Stream(site, path, token=greedy) as stream:
            return stream.status == 200

    wait_until(is_given_back, "that a stream is given back")
