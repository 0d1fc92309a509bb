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
        failed = asyncio.Event()

        async def application(scope: Any, receive: Any, send: Any) -> None:
            async def send_to_nobody(message: dict[str, Any]) -> None:
                if message["type"] == "websocket.send":
                    failed.set()
                    # Daphne raises this after the client leaves and before its own disconnect
                    # message.
                    raise Disconnected("Attempt to send on a closed protocol")
                await send(message)

            await websocket_application(scope, receive, send_to_nobody)

        client = WebsocketCommunicator(
            application, path.format(run=run), headers=[*headers, (b"cookie", cookie.encode())]
        )
        assert (await client.connect(timeout=HANG))[0]
        async with asyncio.timeout(HANG):
            await failed.wait()
        await client.send_to(text_data="{}")  # the socket of a run answers each frame
        await client.disconnect(timeout=HANG)

    with caplog.at_level(logging.ERROR):
        asyncio.run(watch())
    assert caplog.records == []
