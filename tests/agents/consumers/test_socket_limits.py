"""Limits of sockets for each user and token: their number, and the rate of opening and use."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest
from channels.testing import WebsocketCommunicator
from django.contrib.auth import get_user_model

from agents.consumers.unknown import refuse_unknown_path
from agents.doors.websockets import base
from agents.routing import websocket_application, websocket_urlpatterns
from agents.services import open_connections
from agents.services.tokens import create_token
from tests.agents.api.rows import client_with
from tests.support import site_writer
from tests.support.hang import HANG

pytestmark = pytest.mark.django_db(transaction=True)
QUEUE = "/ws/approvals/"
NOISE = "vel_" + "x" * 43
Limits = Callable[..., None]


@pytest.fixture
def limits(settings: Any, one_minute: None) -> Limits:
    def set_limits(**given: int) -> None:
        settings.VEL = {**settings.VEL, **given}

    return set_limits


def token_of(name: str, *scopes: str) -> str:
    person = get_user_model().objects.get(username=name)
    return create_token(person, scopes=scopes or ("read", "run"))[1]


class Socket(WebsocketCommunicator):
    """A socket that a program opens with a token, from `address`."""

    def __init__(self, token: str, path: str = QUEUE, address: str = "192.0.2.1") -> None:
        headers = [(b"host", b"localhost"), (b"authorization", f"Token {token}".encode())]
        super().__init__(websocket_application, path, headers=headers)
        self.scope["client"] = [address, 4711]

    async def opened(self) -> Socket:
        assert (await self.connect(timeout=HANG))[0]
        return self

    async def refusal(self) -> tuple[str, int]:
        """Return the code in the error frame, or an empty string, and the close code."""
        await self.opened()
        word = ""
        output = await self.receive_output(timeout=HANG)
        if output["type"] == "websocket.send":
            frame = json.loads(output["text"])
            assert frame["type"] == "error"
            assert frame["message"]
            word = frame["code"]
            output = await self.receive_output(timeout=HANG)
        await self.disconnect(timeout=HANG)
        return word, output["code"]

    async def is_let_in(self) -> bool:
        await self.opened()
        output = await self.receive_output(timeout=HANG)
        await self.disconnect(timeout=HANG)
        return '"pending"' in output.get("text", "")


def play(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(story())


def test_a_token_has_a_limit_and_a_person_another(limits: Limits) -> None:
    limits(CONNECTIONS_PER_TOKEN=2, CONNECTIONS_PER_USER=3)
    site_writer.make_user("olga")
    site_writer.make_user("peter")
    run = site_writer.make_run("olga")
    site_writer.append(run, [("run.started", {})])
    first, second, peters = token_of("olga"), token_of("olga"), token_of("peter")

    async def story() -> None:
        # The sockets of runs and of the queue count together.
        sockets = [await Socket(first).opened(), await Socket(first, f"/ws/runs/{run}/").opened()]
        for socket in sockets:
            await socket.receive_from(timeout=HANG)
        assert await Socket(first).refusal() == ("too_many_connections", 4429)
        sockets.append(await Socket(second).opened())
        await sockets[-1].receive_from(timeout=HANG)
        assert await Socket(second).refusal() == ("too_many_connections", 4429)
        assert await Socket(peters).is_let_in()
        await sockets.pop().disconnect(timeout=HANG)
        assert await Socket(second).is_let_in()
        for socket in sockets:
            await socket.disconnect(timeout=HANG)

    play(story)
    assert open_connections.open_now(get_user_model().objects.get(username="olga").pk) == 0


def test_a_place_is_kept_for_other_requests(
    limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    gc.collect()  # generators of earlier tests that never started still have their places
    monkeypatch.setattr(open_connections, "_most", 0)
    open_connections.limit_lasting(4)  # three of them may be lasting, and one person has one
    names = ("olga", "peter", "rosa", "sven")
    for name in names:
        site_writer.make_user(name)
    tokens = [token_of(name) for name in names]

    async def story() -> None:
        sockets = []
        for token in tokens[:3]:
            sockets.append(await Socket(token).opened())
            assert '"pending"' in await sockets[-1].receive_from(timeout=HANG)
        assert await Socket(tokens[0]).refusal() == ("too_many_connections", 4429)
        assert await Socket(tokens[3]).refusal() == ("no_room", 4503)
        for socket in sockets:
            await socket.disconnect(timeout=HANG)

    play(story)


def test_a_refusal_keeps_nothing_of_its_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_connections, "_most", 1)

    class Request:
        pass

    def requests() -> weakref.ref[Request]:
        request = Request()
        place = open_connections.take_place("olga")
        with suppress(open_connections.NoRoom):
            place = open_connections.take_place("peter")
        place.release()
        return weakref.ref(request)

    gc.disable()
    try:
        assert requests()() is None
    finally:
        gc.enable()


def test_bad_tokens_count_for_the_address_as_at_the_api(limits: Limits) -> None:
    limits(API_FAILED_SIGN_INS=3)
    site_writer.make_user("olga")
    good = token_of("olga")

    async def story() -> None:
        codes = [await Socket(NOISE).refusal() for _ in range(4)]
        assert codes == [("", 4401)] * 3 + [("throttled", 4429)]
        assert await Socket(NOISE, address="192.0.2.2").refusal() == ("", 4401)
        # Behind a proxy all clients have one address.
        assert await Socket(good).is_let_in()

    play(story)
    rest = client_with(NOISE)
    assert rest.get("/api/v1/runs", REMOTE_ADDR="192.0.2.1").status_code == 429


def test_opening_sockets_counts_as_requests(limits: Limits) -> None:
    limits(API_TOKEN_REQUESTS=2)
    site_writer.make_user("olga")
    good, narrow = token_of("olga"), token_of("olga", "run")

    async def story() -> None:
        assert [await Socket(good).is_let_in() for _ in range(2)] == [True, True]
        assert await Socket(good).refusal() == ("throttled", 4429)
        codes = [(await Socket(narrow).refusal())[1] for _ in range(3)]
        assert codes == [4403, 4403, 4429]

    play(story)
    assert client_with(good).get("/api/v1/runs").status_code == 429


def test_frames_count_as_requests(limits: Limits) -> None:
    limits(API_USER_REQUESTS=3)
    site_writer.make_user("olga")
    token, run = token_of("olga"), site_writer.make_run("olga")

    async def story() -> None:
        socket = await Socket(token, f"/ws/runs/{run}/").opened()
        answers = []
        for number in range(3):
            message = {"type": "message", "text": "Hello", "key": f"k{number}", "ref": "r"}
            await socket.send_to(text_data=json.dumps(message))
            while (answer := json.loads(await socket.receive_from(timeout=HANG))).get("ref") != "r":
                pass
            answers.append(answer.get("code", answer["type"]))
        await socket.disconnect(timeout=HANG)
        assert answers == ["accepted", "accepted", "throttled"]  # the first was the handshake

    play(story)


def test_the_server_can_send_each_close_code() -> None:
    codes = [value for name, value in vars(base).items() if name.isupper()]
    assert codes
    assert all(3000 <= code <= 4999 for code in codes)


@pytest.mark.parametrize("pattern", websocket_urlpatterns, ids=lambda item: str(item.pattern))
def test_every_socket_counts_for_its_user(limits: Limits, pattern: Any) -> None:
    consumer = getattr(pattern.callback, "consumer_class", None)
    if consumer is None:
        assert pattern.callback is refuse_unknown_path
        return
    limits(CONNECTIONS_PER_TOKEN=1, API_FAILED_SIGN_INS=1)
    site_writer.make_user("olga")
    site_writer.make_user("eve")
    run = site_writer.make_run("olga")
    site_writer.append(run, [("run.started", {})])
    path = "/" + str(pattern.pattern).replace("<slug:run_id>", run)
    assert "<" not in path
    good, narrow, strangers = token_of("olga"), token_of("olga", "run"), token_of("eve")

    async def story() -> None:
        first = await Socket(good, path).opened()
        await first.receive_from(timeout=HANG)
        assert await Socket(good, path).refusal() == ("too_many_connections", 4429)
        await first.disconnect(timeout=HANG)
        assert (await Socket(narrow, path).refusal())[1] == 4403
        assert [(await Socket(NOISE, path).refusal())[1] for _ in range(2)] == [4401, 4429]
        if "run_id" in str(pattern.pattern):
            assert (await Socket(strangers, path).refusal())[1] == 4404

    play(story)
