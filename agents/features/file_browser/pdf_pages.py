"""Pages of PDF files as pictures: rendered in a sandbox, one page at a time, and kept for a while.

Nobody's browser gets a byte of the file. The renderer's picture is encoded again in this process,
because the renderer has read an untrusted file.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import BufferedIOBase

from django.utils.translation import gettext, gettext_noop

from agents.documents.pdf_page import MOST_PAGES, PdfPage
from agents.models import Thread
from agents.png import NotAPicture, remade_png
from agents.services.files.shown_documents import MOST_BYTES
from agents.services.files.shown_pictures import WAIT_SECONDS, reader_of, reading_turn
from sandbox.cancellation import Cancellation
from sandbox.errors import SandboxError

KEPT, KEPT_BYTES = 500, 32_000_000
"""Limits of the cache of pages in each web process."""
KEPT_SECONDS = 300.0
PROBLEM_SECONDS = 30.0
"""The same for a document that cannot be read: the operator may be repairing the server."""
MOST_WAITING = 20
"""Requests of one user that wait for a page in each web process. Further ones are refused."""

CHANGED = gettext_noop("the file has changed; reload the page")
_CHUNK = 256 * 1024
_Key = tuple[str, str, int]
_lock = threading.Lock()
_kept: OrderedDict[_Key, tuple[PdfPage | str, float]] = OrderedDict()
_changed = threading.Condition()
_requests: Counter[int] = Counter()
"""Requests that wait or render, by user."""
_rendering: set[int] = set()
"""Users for whom a page is rendered. One page at a time: nobody takes all turns."""


class Busy(Exception):
    """Other files are being read. `status` is for the response."""

    def __init__(self, status: int) -> None:
        super().__init__(gettext("Other pages are being rendered. Try again in a moment."))
        self.status = status


def digest_of(stream: BufferedIOBase) -> str:
    """Return the SHA-256 digest of the file, or of its first bytes if it is too large."""
    digest = hashlib.sha256()
    left = MOST_BYTES + 1
    while left and (chunk := stream.read(min(left, _CHUNK))):
        digest.update(chunk)
        left -= len(chunk)
    return digest.hexdigest()


def page_of(
    thread: Thread, user_id: int, stream: BufferedIOBase, digest: str, number: int
) -> PdfPage | str:
    """Return a page of a PDF, from 1, or the reason why the document cannot be read. Blocks.

    Reasons in the cache are in English: a page translates them.

    `digest` is the `digest_of` the stream. The file is read again when it is the user's turn, so
    that requests that wait need no memory. Raises `Busy`.
    """
    if not 1 <= number <= MOST_PAGES:
        return gettext("only the first %(number)s pages are shown") % {"number": MOST_PAGES}
    key = (thread.pk, digest, number)
    if (found := kept_page(*key)) is not None:
        return found
    with _turn_of(user_id):
        # Another request may have rendered it in the meantime.
        if (found := kept_page(*key)) is not None:
            return found
        stream.seek(0)
        data = stream.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            return gettext_noop("it is too large for a preview")
        if hashlib.sha256(data).hexdigest() != digest:
            return CHANGED
        found = _rendered(thread, data, number)
        _keep(key, found)
        return found


def kept_page(thread_id: str, digest: str, number: int) -> PdfPage | str | None:
    """Return a page from the cache."""
    with _lock:
        found, until = _kept.get((thread_id, digest, number), (None, 0.0))
        return found if time.monotonic() < until else None


def _rendered(thread: Thread, data: bytes, number: int) -> PdfPage | str:
    try:
        found = reader_of(thread).pdf_page(data, number, Cancellation())
    except SandboxError:
        return gettext_noop("documents cannot be read on this server")
    if isinstance(found, str) or isinstance(found.picture, str):
        return found
    try:
        return replace(found, picture=remade_png(found.picture))
    except NotAPicture as error:
        return replace(found, picture=str(error))


@contextmanager
def _turn_of(user_id: int) -> Iterator[None]:
    """Wait until this user may render a page. Raises `Busy`."""
    with _changed:
        if _requests[user_id] >= MOST_WAITING:
            raise Busy(429)
        _requests[user_id] += 1
    try:
        with _changed:
            if not _changed.wait_for(lambda: user_id not in _rendering, WAIT_SECONDS):
                raise Busy(503)
            _rendering.add(user_id)
        try:
            if not reading_turn.acquire(timeout=WAIT_SECONDS):
                raise Busy(503)
            try:
                yield
            finally:
                reading_turn.release()
        finally:
            with _changed:
                _rendering.discard(user_id)
                _changed.notify_all()
    finally:
        with _changed:
            _requests[user_id] -= 1
            if not _requests[user_id]:
                del _requests[user_id]


def _keep(key: _Key, page: PdfPage | str) -> None:
    seconds = PROBLEM_SECONDS if isinstance(page, str) else KEPT_SECONDS
    with _lock:
        _kept[key] = page, time.monotonic() + seconds
        while len(_kept) > KEPT or sum(map(_size, _kept.values())) > KEPT_BYTES:
            _kept.popitem(last=False)


def _size(kept: tuple[PdfPage | str, float]) -> int:
    page, _ = kept
    return len(page.picture) if isinstance(page, PdfPage) else len(page)
