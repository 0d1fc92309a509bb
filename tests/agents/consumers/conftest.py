"""Clients of a served site's sockets."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from http.cookiejar import CookieJar
from typing import Any
from urllib.request import HTTPCookieProcessor, build_opener

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.support.hang import HANG
from tests.support.site import Site


class Client:
    """A user's socket, opened as the site's own page opens it."""

    def __init__(
        self,
        closing: ExitStack,
        site: Site,
        run: str,
        *,
        user: str | None = "olga",
        after: str = "0",
        origin: str | None = "own",
        session: str | None = None,
        token: str | None = None,
        path: str | None = None,
        host: str | None = None,
        authorization: str | None = None,
    ) -> None:
        given: dict[str, str] = {}
        self.csrf = csrf_of(site)
        self.session = session or (site.do("sign_in", user=user) if user else None)
        cookies = {"sessionid": self.session, "csrftoken": self.csrf}
        given["Cookie"] = "; ".join(f"{name}={value}" for name, value in cookies.items() if value)
        if token is not None:
            given["Authorization"] = f"Bearer {token}"
        if authorization is not None:
            given["Authorization"] = authorization
        opening = connect(
            f"ws://{host or f'localhost:{site.port}'}{path or f'/ws/runs/{run}/?after={after}'}",
            sock=socket.create_connection(("localhost", site.port), timeout=HANG),
            origin=site.url if origin == "own" else origin,  # type: ignore[arg-type]
            additional_headers=given,
            open_timeout=HANG,
            close_timeout=HANG,
        )
        self.socket: ClientConnection = closing.enter_context(opening)

    def take(self, count: int = 1) -> list[dict[str, Any]]:
        """Return the next `count` frames, of any type."""
        return [json.loads(self.socket.recv(timeout=HANG)) for _ in range(count)]

    def say(self, type: str, **fields: Any) -> None:
        self.socket.send(json.dumps({"type": type, "csrf": self.csrf, **fields}))

    def ask(self, type: str, **fields: Any) -> dict[str, Any]:
        """Send a message and return the answer, without the events before it."""
        self.say(type, **fields)
        return self.answer()

    def answer(self) -> dict[str, Any]:
        while {"run_id", "seq"} <= (frame := self.take()[0]).keys():
            pass
        return frame

    def close_code(self) -> int | None:
        """Return the code with which the server closes, without the frames before it."""
        try:
            while True:
                self.socket.recv(timeout=HANG)
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else None


def csrf_of(site: Site) -> str:
    cookies = CookieJar()
    build_opener(HTTPCookieProcessor(cookies)).open(f"{site.url}/login/").close()
    (token,) = [cookie.value for cookie in cookies if cookie.name == "csrftoken"]
    assert token is not None
    return token


@pytest.fixture
def open_client(site: Site) -> Iterator[Any]:
    """`open_client(run, user=…)` returns a `Client`, which is closed when the test ends."""
    with ExitStack() as closing:
        yield partial(Client, closing, site)
