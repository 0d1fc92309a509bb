"""The queue's socket: counts of the user's own requests only."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection
from django.test.utils import CaptureQueriesContext
from websockets.exceptions import InvalidStatus

from agents.consumers import queue_watch
from agents.doors.websockets.base import INTERNAL_ERROR, SessionCredentials
from agents.routing import websocket_application
from agents.selectors import queue as queue_selector
from tests.agents.consumers.conftest import Client
from tests.support import site_writer
from tests.support.hang import HANG
from tests.support.site import Site

Open = Callable[..., Client]


def opened(open_client: Open, user: str | None, **options: Any) -> Client:
    return open_client("", user=user, path="/ws/approvals/", **options)


def pending(client: Client) -> int:
    [frame] = client.take()
    assert set(frame) == {"type", "pending", "version"}
    return int(frame["pending"])


@pytest.mark.slow
def test_the_count_comes_immediately_and_on_each_change(site: Site, open_client: Open) -> None:
    site.do("make_user", name="rosa")
    run = site.do("make_run", owner="rosa")
    rosa = opened(open_client, "rosa")
    assert pending(rosa) == 0
    request = site.do("ask", run=run, tool="send", tool_input={})
    assert pending(rosa) == 1
    site.do("supersede", request=request)
    assert pending(rosa) == 0


@pytest.mark.slow
def test_requests_of_others_are_not_reported(site: Site, open_client: Open) -> None:
    for name in ("sven", "tara"):
        site.do("make_user", name=name)
    sven, tara = opened(open_client, "sven"), opened(open_client, "tara")
    assert (pending(sven), pending(tara)) == (0, 0)
    site.do("ask", run=site.do("make_run", owner="sven"), tool="send", tool_input={})
    assert pending(sven) == 1
    site.do("ask", run=site.do("make_run", owner="tara"), tool="send", tool_input={})
    # Her first message after the start is for her own request.
    assert pending(tara) == 1


def test_strangers_get_nothing(site: Site, open_client: Open) -> None:
    assert opened(open_client, None).close_code() == 4401
    assert opened(open_client, None, session="made-up").close_code() == 4401
    token = site.do("make_token", user="olga", scopes=["run"])
    assert opened(open_client, None, token=token).close_code() == 4403
    for origin in (None, "http://evil.example", "null"):
        with pytest.raises(InvalidStatus):
            opened(open_client, "olga", origin=origin)


@pytest.mark.slow
def test_messages_of_a_client_change_nothing(site: Site, open_client: Open) -> None:
    site.do("make_user", name="udo")
    run = site.do("make_run", owner="udo")
    request = site.do("ask", run=run, tool="send", tool_input={})
    udo = opened(open_client, "udo")
    assert pending(udo) == 1
    udo.say("decide", approval_id=request, digest="", decision="approve")
    udo.socket.send(b"\x00")
    udo.socket.send("{")
    site.do("ask", run=run, tool="send", tool_input={}, call_id="toolu_2")
    assert pending(udo) == 2
    assert site.do("approval", request=request)["status"] == "pending"


def take_permission_away(session: str) -> None:
    get_user_model().objects.get(username="ada").user_permissions.clear()


def end_session(session: str) -> None:
    site_writer.sign_out(session)


def deactivate(session: str) -> None:
    get_user_model().objects.filter(username="ada").update(is_active=False)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("end_right", "last"),
    [(take_permission_away, 0), (end_session, 4401), (deactivate, 4401)],
)
def test_a_right_that_ends_while_the_socket_is_open(
    monkeypatch: pytest.MonkeyPatch, end_right: Callable[[str], None], last: int
) -> None:
    monkeypatch.setattr(queue_watch, "RECHECK_SECONDS", 0.1)
    site_writer.make_user("olga")
    site_writer.make_user("ada", approver=True)
    session = site_writer.sign_in("ada")
    run = site_writer.make_run("olga")
    site_writer.ask(run, "send", {})

    async def watch() -> None:
        client = communicator(session)
        await client.connect(timeout=HANG)
        assert '"pending": 1' in await client.receive_from(timeout=HANG)
        await sync_to_async(end_right)(session)
        await sync_to_async(site_writer.ask)(run, "send", {}, "toolu_2")
        output = await client.receive_output(timeout=HANG)
        if '"pending": 2' in output.get("text", ""):
            # The message was sent before the next check of the right.
            output = await client.receive_output(timeout=HANG)
        if last:
            assert output == {"type": "websocket.close", "code": last}
        else:
            assert '"pending": 0' in output["text"]
        await client.disconnect(timeout=HANG)

    asyncio.run(watch())


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_many_watchers_share_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []
    looked = queue_selector.waiting_for_all

    def counted() -> queue_selector.Waiting:
        looks.append(threading.get_ident())
        return looked()

    monkeypatch.setattr(queue_watch, "waiting_for_all", counted)
    monkeypatch.setattr(queue_watch, "LOOK_SECONDS", 0.05)
    site_writer.make_user("olga")
    run = site_writer.make_run("olga")
    credentials = SessionCredentials({settings.SESSION_COOKIE_NAME: site_writer.sign_in("olga")})

    async def watch() -> None:
        watchers = [queue_watch.queue_watch().watching(credentials) for _ in range(50)]
        news = [await watcher.__aenter__() for watcher in watchers]
        for each in news:
            async with asyncio.timeout(HANG):
                await each.news.wait()
            each.news.clear()
        before = len(looks)
        await sync_to_async(site_writer.ask)(run, "send", {})
        async with asyncio.timeout(HANG):
            await asyncio.gather(*(each.news.wait() for each in news))
        assert len(looks) - before < 50
        for watcher in watchers:
            await watcher.__aexit__(None, None, None)
        assert not queue_watch.queue_watch().is_looking

    asyncio.run(watch())
    assert looks


def communicator(session: str) -> WebsocketCommunicator:
    cookie = f"{settings.SESSION_COOKIE_NAME}={session}"
    headers = [("host", "localhost"), ("origin", "http://localhost"), ("cookie", cookie)]
    return WebsocketCommunicator(
        websocket_application,
        "/ws/approvals/",
        headers=[(name.encode(), value.encode()) for name, value in headers],
    )


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_a_change_and_back_around_one_look_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_watch, "LOOK_SECONDS", 0.05)
    site_writer.make_user("olga")
    run = site_writer.make_run("olga")
    credentials = SessionCredentials({settings.SESSION_COOKIE_NAME: site_writer.sign_in("olga")})
    asked: list[str] = []
    looked = queue_selector.waiting_for_all

    def changed_just_after() -> queue_selector.Waiting:
        version = looked()
        if not asked:  # the consumer's own read sees it, and the next check does not
            asked.append(site_writer.ask(run, "send", {}))
        return version

    monkeypatch.setattr(queue_watch, "waiting_for_all", changed_just_after)

    async def watch() -> None:
        watching = queue_watch.queue_watch().watching(credentials)
        async with watching as watcher, asyncio.timeout(HANG):
            await watcher.news.wait()
            watcher.news.clear()
            assert watcher.found().count == 1
            await sync_to_async(site_writer.supersede)(asked[0])
            await watcher.news.wait()
            assert watcher.found().count == 0

    asyncio.run(watch())


@pytest.mark.django_db(transaction=True)
def test_an_unexpected_error_closes_the_sockets_and_new_ones_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked = queue_selector.waiting_for_all

    def fail() -> queue_selector.Waiting:
        raise KeyError("a bug")

    site_writer.make_user("olga")
    session = site_writer.sign_in("olga")

    async def watch() -> None:
        first, second, third = (communicator(session) for _ in range(3))
        await first.connect(timeout=HANG)
        assert '"pending": 0' in await first.receive_from(timeout=HANG)
        monkeypatch.setattr(queue_watch, "waiting_for_all", fail)
        await second.connect(timeout=HANG)
        closed = {"type": "websocket.close", "code": INTERNAL_ERROR}
        assert await first.receive_output(timeout=HANG) == closed
        assert await second.receive_output(timeout=HANG) == closed
        monkeypatch.setattr(queue_watch, "waiting_for_all", looked)
        await third.connect(timeout=HANG)
        assert '"pending": 0' in await third.receive_from(timeout=HANG)
        for each in (first, second, third):
            await each.disconnect(timeout=HANG)

    asyncio.run(watch())


@pytest.mark.django_db
def test_many_sockets_of_one_session_share_a_read(monkeypatch: pytest.MonkeyPatch) -> None:
    site_writer.make_user("olga")
    cookies = {settings.SESSION_COOKIE_NAME: site_writer.sign_in("olga")}
    watchers = [queue_watch.Watcher(SessionCredentials(cookies)) for _ in range(50)]
    version, _ = queue_watch._read("", {}, {})

    with CaptureQueriesContext(connection) as idle:
        assert queue_watch._read(version, {}, queue_watch._by_key(watchers)) == (version, {})
    with CaptureQueriesContext(connection) as one:
        queue_watch._read(version, queue_watch._by_key(watchers[:1]), {})
    with CaptureQueriesContext(connection) as many:
        queue_watch._read(version, queue_watch._by_key(watchers), {})

    assert len(idle) == 1
    assert len(many) == len(one)


@pytest.mark.django_db
def test_a_look_is_one_query() -> None:
    with CaptureQueriesContext(connection) as queries:
        queue_selector.waiting_for_all()
    assert len(queries) == 1
