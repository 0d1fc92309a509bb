"""Agents' pictures for people: their pixels are always encoded again.

A PNG is encoded again in this process, by `agents.png`. JPEG, WebP and GIF need a decoder, and
decoders have vulnerabilities: they run in a sandbox (`agents.documents.reader`), and the resulting
PNG is encoded again as well. A browser's decoder never receives bytes that an agent wrote.
"""

from __future__ import annotations

import hashlib
import math
import os
import threading
import time
from collections import OrderedDict

from django.db import transaction

from agents.documents.reader import DocumentReader, picture_size
from agents.models import Thread
from agents.png import NotAPicture, remade_png
from agents.services.files.workspaces import assign_sandbox_uid, workspace_location
from agents.settings import DataSettings, UploadSettings
from sandbox.cancellation import Cancellation
from sandbox.errors import SandboxError
from sandbox.workspace import own_directory_account, uid_for

PNG = (".png",)
DECODED = (".jpg", ".jpeg", ".webp", ".gif")
"""Formats that are decoded in a sandbox, if there is one."""
AT_ONCE = 2
"""The number of pictures that one web process decodes at the same time; others wait."""
WAIT_SECONDS = 20.0
KEPT, KEPT_BYTES = 1_000, 32_000_000
"""Limits of the cache of converted pictures in each web process: a page is loaded repeatedly, and
by several people."""
REFUSED_SECONDS = 300.0
"""An unreadable file is not tried again before this time: a page with it may be loaded often."""
KNOWN_SECONDS = 30.0
"""The lifetime of the result whether pictures can be decoded here."""

reading_turn = threading.BoundedSemaphore(AT_ONCE)
"""Held while a file is read in a sandbox."""
_lock = threading.Lock()
_kept: OrderedDict[bytes, tuple[bytes | str, float]] = OrderedDict()
"""By the file's digest: the picture or the reason why it is missing, and its expiry (monotonic)."""
_problems: dict[tuple[object, str], tuple[float, str]] = {}


class TooManyPictures(Exception):
    """Too many other pictures are being decoded. Try again later."""


def is_picture(path: str) -> bool:
    """Return whether the name is that of a picture. The bytes are checked for display only."""
    return path.lower().endswith((*PNG, *DECODED))


def is_shown(path: str) -> bool:
    """Return whether a file with this name can be displayed here."""
    name = path.lower()
    return name.endswith(PNG) or (name.endswith(DECODED) and not why_not_shown())


def why_not_shown() -> str:
    """Return why JPEG, WebP and GIF are only downloads, as text for people, or ""."""
    key = (DataSettings.now().toolboxes, UploadSettings.now().DOCUMENTS_TOOLBOX)
    since, problem = _problems.get(key, (0.0, ""))
    now = time.monotonic()
    if not since or now - since > KNOWN_SECONDS:
        uid = uid_for(0) if os.geteuid() == 0 else None
        problem = DocumentReader(uid, uid).problem
        _problems[key] = now, problem
    return f"JPEG, WebP and GIF pictures are not shown here: {problem}." if problem else ""


def shown_picture(thread: Thread, data: bytes) -> bytes:
    """Return a PNG of the same pixels, possibly smaller; of an animation, the first picture.

    `data` is at most `agents.png.MAX_BYTES`. Blocks. Raises `NotAPicture` if it is no picture,
    exceeds limits or cannot be decoded here; `TooManyPictures` if others are decoded first.
    """
    found = picture_size(data)
    if found is None or found[0] == "image/png":
        return remade_png(data)
    if problem := why_not_shown():
        raise NotAPicture(problem)
    digest = hashlib.sha256(data).digest()
    result = _known(digest)
    if result is None:
        result = _decode(thread, data)
        _keep(digest, result)
    if isinstance(result, str):
        raise NotAPicture(result)
    return result


def _decode(thread: Thread, data: bytes) -> bytes | str:
    """Return the picture, or the reason why it cannot be shown."""
    if not reading_turn.acquire(timeout=WAIT_SECONDS):
        raise TooManyPictures("Other pictures are being read: look again in a moment.")
    try:
        decoded = reader_of(thread).shown(data, Cancellation())
        return decoded if isinstance(decoded, str) else remade_png(decoded)
    except NotAPicture as error:
        return str(error)
    except SandboxError:
        raise NotAPicture("It cannot be read on this server.") from None
    finally:
        reading_turn.release()


def reader_of(thread: Thread) -> DocumentReader:
    """Return a reader with the account of the thread's commands, and no other."""
    with transaction.atomic():
        assign_sandbox_uid(thread)
    location = workspace_location(thread)
    own = location.own_directory
    uid = own_directory_account(own) if own is not None else location.uid
    return DocumentReader(uid, uid)


def _known(digest: bytes) -> bytes | str | None:
    with _lock:
        result, until = _kept.get(digest, (None, 0.0))
        if result is None or time.monotonic() > until:
            return None
        _kept.move_to_end(digest)
        return result


def _keep(digest: bytes, result: bytes | str) -> None:
    until = time.monotonic() + REFUSED_SECONDS if isinstance(result, str) else math.inf
    with _lock:
        _kept[digest] = result, until
        while sum(len(kept) for kept, _ in _kept.values()) > KEPT_BYTES or len(_kept) > KEPT:
            _kept.popitem(last=False)
