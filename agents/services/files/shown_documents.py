"""The text of documents for people, such as PDF files: read in a sandbox, without the layout.

A browser's own viewer would run the document's scripts with its own bugs, and the pages' policy
allows none. The text is Markdown, as agents get it.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict

from agents.models import Thread
from agents.services.files.shown_pictures import WAIT_SECONDS, reader_of, reading_turn
from sandbox.cancellation import Cancellation
from sandbox.errors import SandboxError

READERS = {
    "pdf": "pdf",
    "docx": "docx",
    "xlsx": "xlsx",
    "pptx": "pptx",
    "rtf": "rtf",
}
"""The reader of `agents.documents` for each ending of a name."""
MOST_BYTES = 20_000_000
KEPT, KEPT_CHARACTERS = 100, 8_000_000
"""Limits of the cache of texts in each web process."""
KEPT_SECONDS = 300.0

_lock = threading.Lock()
_kept: OrderedDict[tuple[str, bytes], tuple[tuple[str, str], float]] = OrderedDict()


def document_text(thread: Thread, reader: str, data: bytes) -> tuple[str, str]:
    """Return (the text as Markdown, ""), or ("", the reason why it cannot be shown). Blocks."""
    key = (reader, hashlib.sha256(data).digest())
    with _lock:
        found, until = _kept.get(key, (("", ""), 0.0))
    if time.monotonic() < until:
        return found
    if not reading_turn.acquire(timeout=WAIT_SECONDS):
        return "", "Other files are being read. Look again in a moment."
    try:
        text, problem = reader_of(thread).markdown(reader, data, Cancellation())
    except SandboxError:
        return "", "Documents cannot be read on this server. Download the file."
    finally:
        reading_turn.release()
    result = (text, f"The text of the document cannot be shown: {problem}." if problem else "")
    with _lock:
        _kept[key] = result, time.monotonic() + KEPT_SECONDS
        while sum(len(kept) for (kept, _), _ in _kept.values()) > KEPT_CHARACTERS or (
            len(_kept) > KEPT
        ):
            _kept.popitem(last=False)
    return result
