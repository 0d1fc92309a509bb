"""Limits of a client's messages, and the times that it waits."""

from __future__ import annotations

MAX_BODY_BYTES = 4 * 1024**2
"""Limit of one request. A message in it has the limit `VEL["MESSAGE_BYTES"]`."""
MAX_ID = 200
"""Characters of a request's id, which is sent back, and of a session's id."""
TOOLS_PER_PAGE = 100

WAIT_SECONDS = 50.0
"""Seconds that a call waits for its answer. Many clients cancel after a minute."""
WAIT_WITH_PROGRESS = 600.0
"""The same for clients that request progress: each progress message restarts their time limit."""
MAX_WAIT_SECONDS = 3_600
LOOK_SECONDS = 5.0
"""Seconds between two checks of the token, after which the client also gets a progress message."""
TELL_SECONDS = 0.5
"""Seconds between two progress messages."""
MAX_PROGRESS = 400
"""Characters of a progress message."""
