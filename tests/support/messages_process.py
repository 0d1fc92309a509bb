"""The loopback Messages API in a separate process, so that a client's CPU time is measured alone.

    python -m tests.support.messages_process --calls 200

plays a tool loop without checks until it is killed. The first line of its output is its URL.
Standard library only, like the whole server: peers in other environments can start it.
"""

from __future__ import annotations

import argparse
import json
import threading

from tests.support.messages_api import MessagesServer
from tests.support.messages_script import tool_loop


def main() -> None:
    """Serve until the process is killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=50, help="tool calls before the answer")
    parser.add_argument("--tool", default="read_file")
    parser.add_argument("--input", type=json.loads, default=None, help="the tool's input as JSON")
    parser.add_argument("--pieces", type=int, default=8, help="deltas a block")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--checked", action="store_true", help="check requests as the tests do")
    options = parser.parse_args()
    script = tool_loop(options.calls, options.tool, options.input, pieces=options.pieces)
    with MessagesServer(script, port=options.port, light=not options.checked) as server:
        print(server.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
