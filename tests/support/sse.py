"""A client of server-sent events over HTTP, as slow as the test wants it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from types import TracebackType
from typing import Any

from tests.support.hang import HANG
from tests.support.site import Site

Frame = dict[str, str]
"""The fields of a frame; a comment is the field of the empty name."""


class Stream:
    """A request whose answer is read frame by frame. A context manager, which hangs up."""

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
            given["Authorization"] = f"Token {token}"
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
        """Every frame until the server ends the answer, comments too."""
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
        """What the frames without a name of their own hold."""
        for frame in self.frames():
            if "data" in frame and "event" not in frame:
                yield json.loads(frame["data"])

    def take(self, count: int) -> list[dict[str, Any]]:
        """The next `count` events."""
        events = self.events()
        return [next(events) for _ in range(count)]

    def last(self) -> Frame:
        """The last frame, once the server has ended the answer."""
        *_, frame = self.frames()
        return frame
