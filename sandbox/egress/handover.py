"""How a socket that listens inside of a sandbox comes into the hands of the proxy outside.

The command is begun by a few lines of Python in the sandbox: they listen on the sandbox's own
loopback, send that socket through an inherited one, and become the command (same process, so its
exit status is the command's own). Both are closed then: inside there is neither a process nor a
descriptor left of this. Since the sandbox's own code runs afterwards only, it never holds
the listening socket.
"""

from __future__ import annotations

import os
import socket
import struct

from sandbox.errors import SandboxSetupError, SandboxUnavailable
from sandbox.namespace import PYTHON

PROXY_PORT = 3128
"""On the loopback of the sandbox, where it is the first to listen."""

_LONGEST_WORD = 1000
_INT = struct.Struct("i")
_FLAGS = socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT

_SOURCE = f"""
import os, signal, socket, sys
link = socket.socket(fileno=int(sys.argv[1]))
link.set_inheritable(False)
listener = socket.socket()
listener.bind(("127.0.0.1", {PROXY_PORT}))
listener.listen(128)
socket.send_fds(link, [b"L"], [listener.fileno()])
listener.close()
for name in ("SIGPIPE", "SIGXFSZ"):
    signal.signal(getattr(signal, name), signal.SIG_DFL)
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError as error:
    link.send(f"{{sys.argv[2]}}: {{error.strerror}}".encode("utf-8", "replace")[:{_LONGEST_WORD}])
    os._exit(127)
"""


def require_python() -> None:
    """Raises `SandboxUnavailable` where the lines above could not run."""
    if not os.access(PYTHON, os.X_OK):
        raise SandboxUnavailable(
            f"A sandbox with network needs {PYTHON} on this host, and it is missing. "
            "Install Python 3, or use network 'none'."
        )


def beginning_with_handover(argv: list[str], link: int) -> list[str]:
    """`argv` with those lines in front. `link` is the descriptor's number in the sandbox."""
    # -I and -S: nothing of the workspace or the environment is imported.
    return [PYTHON, "-I", "-S", "-X", "utf8", "-c", _SOURCE, str(link), *argv]


def environment() -> dict[str, str]:
    """What makes HTTP clients use the proxy."""
    proxy = f"http://127.0.0.1:{PROXY_PORT}"
    names = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    local = "localhost,127.0.0.1,::1"
    return {
        **dict.fromkeys(names, proxy),
        "no_proxy": local,
        "NO_PROXY": local,
        "NODE_USE_ENV_PROXY": "1",
    }


class Handover:
    """What came through our end of the link: the listening socket, then perhaps an error."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self.listener: socket.socket | None = None
        self.error = ""
        self.has_ended = False

    def read(self) -> bool:
        """Take in one message without waiting; False when there is none."""
        try:
            # Not `socket.recv_fds`, which in Python 3.11 forgets the flags.
            data, ancillary, _, _ = self._link.recvmsg(
                _LONGEST_WORD, socket.CMSG_LEN(_INT.size), _FLAGS
            )
        except BlockingIOError:
            return False
        sent = [content for _, kind, content in ancillary if kind == socket.SCM_RIGHTS]
        for content in sent:
            (descriptor,) = _INT.unpack(content[: _INT.size])
            received = socket.socket(fileno=descriptor)
            if self.listener is None and _is_listener(received):
                received.setblocking(False)
                self.listener = received
            else:
                received.close()
        if data and not sent:
            self.error = data.decode("utf-8", "replace")
        self.has_ended = not data
        return bool(data)

    def check(self, stderr: str) -> None:
        """Raises `SandboxSetupError` when the command did not run."""
        if self.error:
            raise SandboxSetupError(f"The command could not be started: {self.error}")
        if self.listener is None:
            raise SandboxSetupError(
                "The sandbox's way to the network could not be set up, so the command did not "
                f"run. stderr: {stderr.strip() or '(empty)'}"
            )


def _is_listener(received: socket.socket) -> bool:
    kind = (received.family, received.type)
    listens = received.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    return kind == (socket.AF_INET, socket.SOCK_STREAM) and bool(listens)
