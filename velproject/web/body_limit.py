"""Size limit for request bodies: Daphne itself would store bodies of any size on disk.

The limits of views apply later, after the whole body has arrived. This limit refuses bodies that
are larger than all views accept, even before sign-in.
"""

from __future__ import annotations

import io
from http import HTTPStatus
from typing import Any

from daphne.http_protocol import WebRequest

from agents.kernel.features import collect
from agents.settings import UploadSettings
from velproject.web.response_headers import bare_answer, missing

FORM_BYTES = 5_000_000
"""The limit for the parts of a form that are not files."""


def longest_body() -> int:
    """Return the bytes of the largest form of any view (`settings.UPLOAD_LIMITS` of features)."""
    limits = [limit() for _, limit in collect("settings", "UPLOAD_LIMITS")]
    return max([UploadSettings.now().UPLOAD_BYTES, *limits]) + FORM_BYTES


class LimitedRequest(WebRequest):
    """A request that is answered with 413 as soon as its body is known to be too long.

    Then the connection is closed.
    """

    is_refused = False
    received = 0
    # Daphne's own page has an inline style sheet, which the policy for its errors forbids.
    error_template = "<!doctype html><title>%(title)s</title><h1>%(title)s</h1><p>%(body)s</p>"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.longest = longest_body()  # computed once, not for each part of the body
        # Django parses forms and describes malformed ones. Twisted would answer without a body.
        self._parsePOSTFormSubmission = False

    def handle_reply(self, message: dict[str, Any]) -> None:
        """Answer like Daphne, with the headers that every response must have."""
        if message.get("type") == "http.response.start":
            given = list(message.get("headers", ()))
            present = {name.lower() for name, _ in given}
            message = {**message, "headers": [*given, *missing(present)]}
        super().handle_reply(message)

    def gotLength(self, length: int | None) -> None:  # Twisted's name
        if length is not None and length > self.longest:
            self._refuse()
            return
        super().gotLength(length)

    def handleContentChunk(self, data: bytes) -> None:  # Twisted's name
        if self.is_refused:
            return  # sent before the connection was closed
        self.received += len(data)
        if self.received > self.longest:  # the body came in chunks, without a length
            self._refuse()
            return
        super().handleContentChunk(data)

    def process(self) -> Any:
        return None if self.is_refused else super().process()

    def _refuse(self) -> None:
        self.is_refused = True
        content, self.content = getattr(self, "content", None), io.BytesIO()
        if content is not None:
            content.close()
        self.channel.transport.write(bare_answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE))
        self.channel.loseConnection()
