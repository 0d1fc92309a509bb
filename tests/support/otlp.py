"""A collector of traces on loopback: OTLP over HTTP, parsed as protobuf.

with collector() as received:
    ...
    spans = received.wait(lambda spans: "chat echo" in names(spans))
"""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tests.support.hang import HANG


@dataclass(frozen=True)
class Got:
    """One received span. `parent` is "" for a root; IDs are hexadecimal."""

    name: str
    trace: str
    id: str
    parent: str
    start: int
    end: int
    kind: int
    failed: bool
    message: str
    attributes: dict[str, Any]
    resource: dict[str, Any]


@dataclass
class Collector:
    """`status` is the status of the responses. `hold` delays them while it is set."""

    url: str = ""
    status: int = 200
    hold: threading.Event = field(default_factory=threading.Event)
    spans: list[Got] = field(default_factory=list)
    requests: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)

    def wait(self, enough: Callable[[list[Got]], Any]) -> list[Got]:
        deadline = time.monotonic() + HANG
        with self.changed:
            while not enough(self.spans):
                left = deadline - time.monotonic()
                names = sorted(span.name for span in self.spans)
                assert left > 0, f"not all came: {names}"
                self.changed.wait(left)
            return list(self.spans)


def _values(pairs: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs:
        kind = pair.value.WhichOneof("value")
        value = getattr(pair.value, kind)
        if kind == "array_value":
            value = [getattr(each, each.WhichOneof("value")) for each in value.values]
        found[pair.key] = value
    return found


@contextmanager
def collector() -> Iterator[Collector]:
    there = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            with there.changed:
                there.requests += 1
                there.changed.notify_all()
            while there.hold.is_set():
                time.sleep(0.01)
            request = ExportTraceServiceRequest()
            request.ParseFromString(body)
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(there.status)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)
            if there.status == 200:
                self.keep(request)

        def keep(self, request: ExportTraceServiceRequest) -> None:
            with there.changed:
                for group in request.resource_spans:
                    resource = _values(group.resource.attributes)
                    for scope in group.scope_spans:
                        for span in scope.spans:
                            there.spans.append(
                                Got(
                                    span.name,
                                    span.trace_id.hex(),
                                    span.span_id.hex(),
                                    span.parent_span_id.hex(),
                                    span.start_time_unix_nano,
                                    span.end_time_unix_nano,
                                    span.kind,
                                    span.status.code == 2,
                                    span.status.message,
                                    _values(span.attributes),
                                    resource,
                                )
                            )
                there.changed.notify_all()

        def log_message(self, *arguments: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    there.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield there
    finally:
        there.hold.clear()
        server.shutdown()
        server.server_close()
        thread.join()
