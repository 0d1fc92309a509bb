"""How much of a server is read. What is more ends the connection, or is not taken."""

from __future__ import annotations

MAX_TOOLS = 128
"""Of one server. A longer list is refused as a whole."""
MAX_PAGES = 32
MAX_DESCRIPTION = 8_000
"""Characters. A longer one is not cut: a cut text is not what the server meant."""
MAX_SCHEMA_BYTES = 16_384
MAX_LIST_BYTES = 200_000
"""Of all descriptions and schemas of one server: every request to the model carries them."""
MAX_MESSAGE_BYTES = 4 * 1024**2
"""One message of a server: a result with its pictures."""
MAX_PENDING_BYTES = 2 * MAX_MESSAGE_BYTES
"""What may wait to be read."""
MAX_MESSAGES = 2_000
"""That a server may send in one call, beside the answer."""
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
"""How long a process may live; it ends with the run's work in any case."""
STATE_BYTES = 512 * 1024**2
STATE_FILES = 20_000
"""What a program may keep in its directory: one that lets it grow over that is killed."""
MAX_STARTS = 5
"""Of one server while one worker has the run."""
