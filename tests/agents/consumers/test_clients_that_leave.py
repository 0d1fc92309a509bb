"""A client that leaves while its socket sends is not an error."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from autobahn.exception import Disconnected
from channels.testing import WebsocketCommunicator
from django.conf import settings

from agents.routing import websocket_application
from tests.support import site_writer
from tests.support.hang import HANG


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", ["/ws/approvals/", "/ws/runs/{run}/?after=0"])
def test_it_is_not_logged_as_a_failure(caplog: pytest.LogCaptureFixture, path: str) -> None:
    site_writer.make_user("olga")
    run = site_writer.make_run("olga")
    site_writer.append(run, [("run.started", {})])
    cookie = f"{settings.SESSION_COOKIE_NAME}={site_writer.sign_in('olga')}"
    headers = [(b"host", b"localhost"), (b"origin", b"http://localhost")]

    async def watch() -> None:
        sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

        async def application(scope: Any, receive: Any, send: Any) -> None:
            async def send_to_nobody(message: dict[str, Any]) -> None:
                sent.put_nowait(message)
                if message["type"] == "websocket.send":
                    # Daphne raises this after the client leaves and before its own disconnect
                    # message.
                    raise Disconnected("Attempt to send on a closed protocol")
                await send(message)

            await websocket_application(scope, receive, send_to_nobody)

        client = WebsocketCommunicator(
            application, path.format(run=run), headers=[*headers, (b"cookie", cookie.encode())]
        )
        assert (await client.connect(timeout=HANG))[0]
        assert (await sent.get())["type"] == "websocket.accept"
        first = asyncio.create_task(sent.get())
        await asyncio.wait([first, client.future], timeout=HANG, return_when="FIRST_COMPLETED")
        assert first.done(), f"nothing was sent: {client.future} {asyncio.all_tasks()}"
        assert first.result()["type"] == "websocket.send", first.result()
        await client.send_to(text_data="{}")  # the socket of a run answers each frame
        await client.disconnect(timeout=HANG)

    with caplog.at_level(logging.ERROR):
        asyncio.run(watch())
    assert caplog.records == []
