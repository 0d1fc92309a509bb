"""Handover of a socket that listens inside a sandbox to the proxy outside.

A few lines of Python start the command in the sandbox. They listen on the sandbox's loopback, send
that socket through an inherited socket, close both, and then execute the command in the same
process, so that the exit status is the command's own. Neither a process nor a descriptor remains
inside. The code of the sandbox's command runs only after that, so it never has the listening
socket.
"""

from __future__ import annotations

import os
import socket
import struct

from sandbox.errors import SandboxSetupError, SandboxUnavailable
from sandbox.linux.namespace import PYTHON

PROXY_PORT = 3128
"""On the loopback of the sandbox. No other process can listen there earlier."""

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
    """Raise `SandboxUnavailable` if Python cannot run in the sandbox."""
    if not os.access(PYTHON, os.X_OK):
        raise SandboxUnavailable(
            f"A sandbox with network needs {PYTHON} on this host, but it is missing. "
            "Install Python 3, or use network 'none'."
        )


def beginning_with_handover(argv: list[str], link: int) -> list[str]:
    """Return `argv` with the Python code of the handover before it.

    `link` is the number of the inherited socket in the sandbox.
    """
    # -I and -S: Python imports no module of the workspace or the environment.
    return [PYTHON, "-I", "-S", "-X", "utf8", "-c", _SOURCE, str(link), *argv]


def environment() -> dict[str, str]:
    """Return the environment variables that make HTTP clients use the proxy."""
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
    """The outer end of the handover: receives the listening socket, or an error."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self.listener: socket.socket | None = None
        self.error = ""
        self.has_ended = False

    def read(self) -> bool:
        """Read one message without waiting.

        Return False if no message is available, or if the sandbox has closed its end.
        """
        try:
            # Not `socket.recv_fds`, which ignores the flags in Python 3.11.
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
        """Raise `SandboxSetupError` if the handover failed, so that the command did not run."""
        if self.error:
            raise SandboxSetupError(f"The command could not be started: {self.error}")
        if self.listener is None:
            raise SandboxSetupError(
                "The sandbox's network connection could not be set up, so the command did not "
                f"run. stderr: {stderr.strip() or '(empty)'}"
            )


def _is_listener(received: socket.socket) -> bool:
    kind = (received.family, received.type)
    listens = received.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    return kind == (socket.AF_INET, socket.SOCK_STREAM) and bool(listens)
