"""Files of an agent on their way to a browser: as attachments that none opens as a page."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse
from django.utils.http import content_disposition_header

from sandbox.backends.protocol import OpenedFile

CHUNK_BYTES = 256 * 1024

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def attachment(opened: OpenedFile, path: str) -> StreamingHttpResponse:
    """The open file as a download under the last name of `path`."""
    name = _CONTROLS.sub("_", path.rpartition("/")[2])
    return StreamingHttpResponse(
        Chunks(opened),
        content_type="application/octet-stream",
        headers={
            "Content-Disposition": content_disposition_header(True, name),
            "Content-Length": str(opened.stat.size),
            "Content-Security-Policy": "sandbox; default-src 'none'",
            "X-Content-Type-Options": "nosniff",
        },
    )


class Chunks:
    """A file's bytes, as many as it had when it was opened. Django closes it after the answer."""

    def __init__(self, opened: OpenedFile) -> None:
        self._opened = opened
        self.close = opened.stream.close

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._opened.stat.size
        read = sync_to_async(self._opened.stream.read)
        while left > 0 and (chunk := await read(min(CHUNK_BYTES, left))):
            left -= len(chunk)
            yield chunk
