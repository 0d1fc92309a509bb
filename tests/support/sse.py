"""A client of server-sent events over HTTP that can be as slow as a test needs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from types import TracebackType
from typing import Any

from tests.support.hang import HANG
from tests.support.site import Site

Frame = dict[str, str]
"""The fields of a frame. A comment has the empty field name."""


class Stream:
    """A context manager with a response that is read frame by frame. Its end disconnects."""

    def __init__(
        self,
        site: Site,
        path: str,
        *,
        token: str = "",
        session: str = "",
        headers: dict[str, str] | None = None,
        body: Any = None,
    ) -> None:
        given = {"Accept": "text/event-stream", **(headers or {})}
        if token:
            given["Authorization"] = f"Bearer {token}"
        if session:
            given["Cookie"] = f"sessionid={session}"
        text = None if body is None else json.dumps(body)
        if body is not None:
            given["Content-Type"] = "application/json"
        self._connection = HTTPConnection("localhost", site.port, timeout=HANG)
        method = "GET" if body is None else "POST"
        self._connection.request(method, f"/api/v1/{path}", body=text, headers=given)
        self.response: HTTPResponse = self._connection.getresponse()

    @property
    def status(self) -> int:
        return self.response.status

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.response.close()
        self._connection.close()

    def problem(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.response.read())
        return found

    def frames(self) -> Iterator[Frame]:
        """Yield every frame until the server ends the response, including comments."""
        frame: Frame = {}
        while line := self.response.readline():
            text = line.decode().rstrip("\n")
            if text:
                name, _, value = text.partition(":")
                frame[name] = value.removeprefix(" ")
            else:
                yield frame
                frame = {}

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield the data of the frames without an event name."""
        for frame in self.frames():
            if "data" in frame and "event" not in frame:
                yield json.loads(frame["data"])

    def take(self, count: int) -> list[dict[str, Any]]:
        """Return the next `count` events."""
        events = self.events()
        return [next(events) for _ in range(count)]

    def last(self) -> Frame:
        """Return the last frame before the server ends the response."""
        *_, frame = self.frames()
        return frame
