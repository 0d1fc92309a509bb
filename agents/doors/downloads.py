"""Downloads of an agent's files, as attachments, which browsers never show as pages."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import IO

from asgiref.sync import sync_to_async
from django.http import FileResponse, HttpResponse, StreamingHttpResponse
from django.utils.http import content_disposition_header

from agents.services.open_connections import Place
from sandbox.backends.names import meant
from sandbox.backends.protocol import OpenedFile

CHUNK_BYTES = 256 * 1024

_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029"  # control characters and line separators
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # change the direction: gpj.exe shows as exe.jpg
    "\u00ad\u200b\u2060-\u2064\ufeff"  # invisible
    "\ud800-\udfff]"  # not UTF-8
)
"""Characters that are removed from the file name of a download."""
_HARMLESS = {
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "X-Content-Type-Options": "nosniff",
}


def attachment(opened: OpenedFile, path: str, place: Place) -> StreamingHttpResponse:
    """Return the open file as a download with the last part of `path` as name.

    `place` is the person's place among the limited number of open connections, because a slow
    client can keep this one open for long. It is released after the response.
    """
    return StreamingHttpResponse(
        Chunks(opened, place),
        content_type="application/octet-stream",
        headers={
            **attachment_headers(path),
            "Content-Length": str(opened.stat.size),
        },
    )


def attached_bytes(
    data: bytes, path: str, content_type: str = "application/octet-stream"
) -> HttpResponse:
    """Return `data` as a download with the last part of `path` as name."""
    return HttpResponse(data, content_type=content_type, headers=attachment_headers(path))


def attached_file(stream: IO[bytes], path: str, content_type: str) -> FileResponse:
    """Return an open file, which the response closes, as a download named as `attached_bytes`."""
    return FileResponse(stream, content_type=content_type, headers=attachment_headers(path))


def plain_text(data: bytes) -> HttpResponse:
    """Return UTF-8 text with headers that stop browsers from guessing another type."""
    return HttpResponse(data, content_type="text/plain; charset=utf-8", headers=_HARMLESS)


def attachment_headers(path: str) -> dict[str, str]:
    """Return the headers of a download with the last part of `path` as name."""
    name = _UNSAFE.sub("_", meant(path.rpartition("/")[2]))
    return {"Content-Disposition": str(content_disposition_header(True, name)), **_HARMLESS}


class Chunks:
    """The bytes of a file, up to its size when opened. Django closes it after the response."""

    def __init__(self, opened: OpenedFile, place: Place) -> None:
        self._opened = opened
        self._place = place

    def close(self) -> None:
        self._opened.stream.close()
        self._place.release()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._opened.stat.size
        read = sync_to_async(self._opened.stream.read)
        while left > 0 and (chunk := await read(min(CHUNK_BYTES, left))):
            left -= len(chunk)
            yield chunk
