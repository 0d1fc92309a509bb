"""Limits of the data of a server. More ends the connection, or is refused."""

from __future__ import annotations

MAX_TOOLS = 128
"""For one server. A longer list is refused as a whole."""
MAX_PAGES = 32
MAX_DESCRIPTION = 8_000
"""Characters. A longer one is refused, because a part of a text can mean something else."""
MAX_SCHEMA_BYTES = 16_384
MAX_LIST_BYTES = 200_000
"""Of all descriptions and schemas of one server: every request to the model carries them."""
MAX_MESSAGE_BYTES = 4 * 1024**2
"""For one message of a server: a result with its pictures."""
MAX_PENDING_BYTES = 2 * MAX_MESSAGE_BYTES
"""For messages that are not read yet."""
MAX_MESSAGES = 2_000
"""For messages of a server during one call, besides the answer."""
MAX_BODY_BYTES = 2 * MAX_MESSAGE_BYTES
"""Of one answer over HTTP, with all events in it."""
MAX_PARTS = 100
"""Of one result."""
MAX_PICTURE_BYTES = 500_000
"""A larger picture goes to a file: it would be sent to the model again with every request."""
OPEN_SECONDS = 30.0
"""To start, to agree on a protocol and to list the tools."""
CLOSE_SECONDS = 5.0
SERVER_SECONDS = 24 * 3600.0
"""The longest life of a process, which ends with the claim of the run in any case."""
STATE_BYTES = 512 * 1024**2
STATE_FILES = 20_000
"""For the directory of a program. A program that exceeds it is killed."""
MAX_STARTS = 5
"""Of one server while one worker has the run."""
