"""A viewer whose right to watch ends during the connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.contrib.auth import get_user_model

from agents.consumers import run as run_consumer
from agents.models import Run
from agents.routing import websocket_application
from tests.support import site_writer
from tests.support.hang import HANG

DELTA = ("text.delta", {"text": "secret"})


def end_session(run: str, session: str) -> None:
    site_writer.sign_out(session)


def give_away(run: str, session: str) -> None:
    other = get_user_model().objects.create_user("peter")
    Run.objects.filter(pk=run).update(owner=other)


def deactivate(run: str, session: str) -> None:
    get_user_model().objects.update(is_active=False)


def change_password(run: str, session: str) -> None:
    user = get_user_model().objects.get()
    user.set_password("another")
    user.save()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("end_right", "code"),
    [(end_session, 4401), (deactivate, 4401), (change_password, 4401), (give_away, 4404)],
)
def test_no_events_are_sent_after_the_rights_end(
    monkeypatch: pytest.MonkeyPatch, end_right: Callable[[str, str], None], code: int
) -> None:
    monkeypatch.setattr(run_consumer, "RECHECK_SECONDS", 0.0)
    site_writer.make_user("olga")
    session = site_writer.sign_in("olga")
    run = site_writer.make_run("olga")
    site_writer.append(run, [DELTA])

    async def watch() -> None:
        cookie = f"{settings.SESSION_COOKIE_NAME}={session}"
        headers = [("host", "localhost"), ("origin", "http://localhost"), ("cookie", cookie)]
        client = WebsocketCommunicator(
            websocket_application,
            f"/ws/runs/{run}/",
            headers=[(name.encode(), value.encode()) for name, value in headers],
        )
        connected, _ = await client.connect(timeout=HANG)
        assert connected
        assert '"seq":1' in await client.receive_from(timeout=HANG)
        await sync_to_async(end_right)(run, session)
        await sync_to_async(site_writer.append)(run, [DELTA])
        assert await client.receive_output(timeout=HANG) == {
            "type": "websocket.close",
            "code": code,
        }
        await client.disconnect(timeout=HANG)

    asyncio.run(watch())
