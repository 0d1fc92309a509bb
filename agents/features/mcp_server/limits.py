"""What a client may send, and how long it is kept waiting."""

from __future__ import annotations

MAX_BODY_BYTES = 4 * 1024**2
"""Of one request. A message in it has the limit `VEL["MESSAGE_BYTES"]`."""
MAX_ID = 200
"""Characters of a request's id, which is sent back, and of a session's."""
TOOLS_PER_PAGE = 100

WAIT_SECONDS = 50.0
"""How long an answer is waited for. Many clients give up after a minute, and cancel then."""
WAIT_WITH_PROGRESS = 600.0
"""The same for clients that ask for progress: with each word of it their patience begins anew."""
MAX_WAIT_SECONDS = 3_600
LOOK_SECONDS = 5.0
"""How often rights are looked at again, and the client hears that the run goes on."""
TELL_SECONDS = 0.5
"""Between two words of progress."""
MAX_PROGRESS = 400
"""Characters of one."""
