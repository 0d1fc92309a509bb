"""Pictures that agents made, for people: pixels that were written anew, whatever the file was.

A PNG is written anew right here, by `agents.png`. JPEG, WebP and GIF take a decoder, and decoders
have holes: they run in a sandbox (`agents.documents.reader`), and what comes out is a PNG that is
written anew like any other. Nothing that an agent wrote reaches a browser's decoder.
"""

from __future__ import annotations

import hashlib
import math
import os
import threading
import time
from collections import OrderedDict

from django.db import transaction

from agents.documents.picture_size import picture_size
from agents.documents.reader import DocumentReader
from agents.models import Thread
from agents.png import NotAPicture, remade_png
from agents.services.files.workspaces import assign_sandbox_uid, workspace_location
from agents.settings import DataSettings, UploadSettings
from sandbox.cancellation import Cancellation
from sandbox.errors import SandboxError
from sandbox.workspace import own_directory_account, uid_for

PNG = (".png",)
DECODED = (".jpg", ".jpeg", ".webp", ".gif")
"""What is decoded in a sandbox, where there is one."""
AT_ONCE = 2
"""Pictures that one web process lets be decoded at the same moment; the next ones wait."""
WAIT_SECONDS = 20.0
KEPT, KEPT_BYTES = 1_000, 32_000_000
"""Of pictures that were made, in each web process: a page is looked at again, and by several."""
REFUSED_SECONDS = 300.0
"""A file that cannot be read is not tried again so soon: a page with it may be opened often."""
KNOWN_SECONDS = 30.0
"""So long it is known whether pictures can be decoded here."""

_turn = threading.BoundedSemaphore(AT_ONCE)
_lock = threading.Lock()
_kept: OrderedDict[bytes, tuple[bytes | str, float]] = OrderedDict()
"""By the file's digest: the picture or why there is none, and until when (monotonic)."""
_problems: dict[tuple[object, str], tuple[float, str]] = {}


class TooManyPictures(Exception):
    """Others are being decoded: later."""


def is_picture(path: str) -> bool:
    """By its name, which people see. What it is by its bytes is found out when it is shown."""
    return path.lower().endswith((*PNG, *DECODED))


def is_shown(path: str) -> bool:
    """Whether a file of this name may be shown here."""
    name = path.lower()
    return name.endswith(PNG) or (name.endswith(DECODED) and not why_not_shown())


def why_not_shown() -> str:
    """Why JPEG, WebP and GIF are downloads only, as people are told; empty where they are shown."""
    key = (DataSettings.now().toolboxes, UploadSettings.now().DOCUMENTS_TOOLBOX)
    since, problem = _problems.get(key, (0.0, ""))
    now = time.monotonic()
    if not since or now - since > KNOWN_SECONDS:
        uid = uid_for(0) if os.geteuid() == 0 else None
        problem = DocumentReader(uid, uid).problem
        _problems[key] = now, problem
    return f"JPEG, WebP and GIF pictures are not shown here: {problem}." if problem else ""


def shown_picture(thread: Thread, data: bytes) -> bytes:
    """A PNG of the same pixels, perhaps smaller, of an animation the first picture.

    `data` is at most `agents.png.MAX_BYTES`. Blocks. Raises `NotAPicture` for what is none, or one
    that takes too much, or where it cannot be decoded; `TooManyPictures` when others come first.
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
    """The picture, or why there is none."""
    if not _turn.acquire(timeout=WAIT_SECONDS):
        raise TooManyPictures("Other pictures are being read: look again in a moment.")
    try:
        decoded = _reader(thread).shown(data, Cancellation())
        return decoded if isinstance(decoded, str) else remade_png(decoded)
    except NotAPicture as error:
        return str(error)
    except SandboxError:
        raise NotAPicture("It cannot be read on this server.") from None
    finally:
        _turn.release()


def _reader(thread: Thread) -> DocumentReader:
    """With the account that the thread's commands have, and nobody else's."""
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
