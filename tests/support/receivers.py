"""The receivers of notifications: an HTTP server and a mail server on loopback.

with receiver(answers=[500, 200]) as hook:
    ...
    assert hook.received[0].json["type"] == "approval.requested"
"""

from __future__ import annotations

import json
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from typing import Any

from aiosmtpd.controller import Controller

from tests.support.hang import HANG

# Its threads also write when they end, after pytest has closed the stream of the test.
logging.getLogger("mail.log").propagate = False
logging.getLogger("mail.log").addHandler(logging.NullHandler())

NO_ANSWER = 0
"""As an answer: no response until the server ends."""


@dataclass(frozen=True)
class Received:
    """One request as received."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class InboundWebhook:
    """A receiver of webhooks. `answers` are the statuses; the last one is repeated."""

    def __init__(self, server: ThreadingHTTPServer, answers: Sequence[int], tls: bool) -> None:
        self.port = server.server_port
        self.host = f"127.0.0.1:{self.port}"
        self.url = f"{'https' if tls else 'http'}://{self.host}/hook"
        self.received: list[Received] = []
        self.arrived: SimpleQueue[Received] = SimpleQueue()
        self.answers = list(answers)
        self.location = ""
        self.body = b""
        self.before_answer: Callable[[], None] = lambda: None
        self.ended = threading.Event()
        self.left = threading.Event()
        """Set when a client closes the connection before it has read the whole answer."""

    def take(self, request: Received) -> int:
        self.received.append(request)
        self.arrived.put(request)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        hook: InboundWebhook = self.server.hook  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        status = hook.take(Received(self.path, headers, body))
        hook.before_answer()
        if status == NO_ANSWER:
            hook.ended.wait(HANG)
            self.close_connection = True
            return
        self.send_response(status)
        if hook.location:
            self.send_header("Location", hook.location)
        self.send_header("Content-Length", str(len(hook.body)))
        self.end_headers()
        try:
            self.wfile.write(hook.body)
        except ConnectionError:
            hook.left.set()
            self.close_connection = True

    do_GET = do_POST

    def log_message(self, format: str, *arguments: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that leave."""


@contextmanager
def receiver(
    answers: Sequence[int] = (200,), *, tls: ssl.SSLContext | None = None
) -> Iterator[InboundWebhook]:
    with _Server(("127.0.0.1", 0), _Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
        hook = InboundWebhook(server, answers, tls is not None)
        server.hook = hook  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield hook
        finally:
            hook.ended.set()
            server.shutdown()
            thread.join()


class Mailbox:
    """The received mails, and the recipients of each."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.recipients: list[list[str]] = []
        self.refuse = ""
        self.port = 0

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        if self.refuse:
            return self.refuse
        mail = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        self.mails.append(mail)
        self.recipients.append(envelope.rcpt_tos)
        return "250 taken"


@contextmanager
def mail_server() -> Iterator[Mailbox]:
    """Start a mail server on loopback. Its port is `port`."""
    mailbox = Mailbox()
    with socket.create_server(("127.0.0.1", 0)) as free:
        mailbox.port = free.getsockname()[1]
    controller = Controller(mailbox, hostname="127.0.0.1", port=mailbox.port)
    controller.start()
    try:
        yield mailbox
    finally:
        controller.stop()
