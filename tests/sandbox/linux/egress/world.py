"""Servers on loopback, networks in which names resolve to them, and a proxy for direct tests."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path

from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.linux.egress.connection import EgressLimits
from sandbox.linux.egress.dialling import PublicInternet
from sandbox.linux.egress.execution import Egress
from sandbox.linux.egress.hosts import Address
from sandbox.linux.egress.proxy import Proxy
from sandbox.linux.egress.rules import rules_for
from sandbox.policy import Network
from tests.sandbox.places import workspace_in

LOOPBACK = ip_address("127.0.0.1")


class Loopback:
    """All names resolve to 127.0.0.1, which is allowed: the servers of the tests."""

    def resolve(self, name: str) -> list[Address]:
        return [LOOPBACK]

    def refusal(self, address: Address) -> str | None:
        return None if address == LOOPBACK else "not the tests' own"


class Names(PublicInternet):
    """The real check of addresses; each look-up of any name returns the next of these answers."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def resolve(self, name: str) -> list[Address]:
        self.asked.append(name)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [ip_address(text) for text in answer]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/to-metadata":
            self.send_response(302)
            self.send_header("Location", "http://169.254.169.254/latest/meta-data/")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self._answer(f"hello from {self.headers['Host'].partition(':')[0]}\n".encode())

    def do_POST(self) -> None:
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline() or b"0", 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(b"%d %s" % (len(body), body[-20:]))

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        self.server.seen.append(self.raw_requestline)  # type: ignore[attr-defined]


@contextmanager
def web_server() -> Iterator[tuple[int, list[bytes]]]:
    """Start an HTTP server on loopback. Yield its port, and the request lines that it received."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.seen = []  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_port, server.seen  # type: ignore[attr-defined]
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def plain_server(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """Start a TCP server on loopback that calls `serve` with each connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def one(peer: socket.socket) -> None:
        with peer:
            serve(peer)

    def accept() -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=one, args=(peer,)).start()

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def echo(peer: socket.socket) -> None:
    with suppress(ConnectionResetError):  # the proxy may reset the connection at its end
        while data := peer.recv(65536):
            peer.sendall(data)


class ByHand:
    """A proxy with a listening socket of this process instead of a sandbox."""

    def __init__(self, egress: Egress, *hosts: str) -> None:
        network = Network.ALLOWLIST if hosts else Network.FULL
        self.proxy = Proxy(rules_for(network, hosts), egress.world, egress.limits)
        listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.address = listener.getsockname()
        with closing(socket.socket(fileno=os.dup(self.proxy.descriptor))) as link:
            socket.send_fds(link, [b"L"], [listener.fileno()])
        listener.close()

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=8)

    def ask(self, request: bytes) -> bytes:
        """Return the complete response of the proxy to `request`, without sending more data."""
        with self.connect() as client:
            client.sendall(request)
            return everything(client)


def everything(client: socket.socket) -> bytes:
    answer = b""
    try:
        while data := client.recv(65536):
            answer += data
    except ConnectionResetError:
        pass
    return answer


@contextmanager
def proxy(
    *hosts: str, world: object | None = None, limits: EgressLimits | None = None
) -> Iterator[ByHand]:
    made = ByHand(Egress(world or Loopback(), limits or EgressLimits()), *hosts)  # type: ignore[arg-type]
    try:
        yield made
    finally:
        made.proxy.close()


def box_with(
    place: Path, *hosts: str, world: object | None = None, limits: EgressLimits | None = None
) -> BubblewrapSandbox:
    """Return a sandbox with an allow-list, or with all of `world` if there are no hosts."""
    policy = replace(
        workspace_in(place).policy(timeout=60),
        network=Network.ALLOWLIST if hosts else Network.FULL,
        allowed_hosts=hosts,
    )
    egress = Egress(world or Loopback(), limits or EgressLimits())  # type: ignore[arg-type]
    return BubblewrapSandbox(policy, egress=egress)
