"""Export of spans to a collector, with a bounded queue and a thread.

Code that creates spans never waits. Spans are dropped and counted if the queue is full, or if the
collector refuses them. This is the only module that imports OpenTelemetry.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from agents.telemetry.ids import RemoteParent
from agents.telemetry.spans import LONGEST, AttributeValue, Span

logger = logging.getLogger(__name__)

SAMPLED = TraceFlags(TraceFlags.SAMPLED)
MOST_VALUES = 100
"""Maximum number of values of a list attribute."""
_CODE = re.compile(r"[A-Za-z0-9_.-]{1,80}")
"""Other codes could contain message text. By the conventions they are exported as `_OTHER`."""
COMPLAIN_SECONDS = 60.0
"""Minimum interval between log messages about failed exports."""
# Without this, the exporter logs several lines for each failed batch.
logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL)


def _number(name: str, default: int) -> int:
    try:
        return max(1, int(os.environ.get(name, "")))
    except ValueError:
        return default


def vel_version() -> str:
    try:
        return version("vel")
    except PackageNotFoundError:
        return "unknown"


class SpanQueue:
    """The spans of this process. `put` can be called from any thread.

    `on_count` is called with "exported", "queue_full" or "export_failed" and the number of spans.
    Sizes and times come from OpenTelemetry's variables OTEL_BSP_MAX_QUEUE_SIZE,
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE and OTEL_BSP_SCHEDULE_DELAY. `exporter` is for tests.
    """

    def __init__(
        self,
        on_count: Callable[[str, int], None] = lambda what, number: None,
        exporter: SpanExporter | None = None,
    ) -> None:
        self._on_count = on_count
        self._given = exporter
        self._size = _number("OTEL_BSP_MAX_QUEUE_SIZE", 2048)
        self._batch = min(_number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512), self._size)
        self._delay = _number("OTEL_BSP_SCHEDULE_DELAY", 2000) / 1000
        provider = TracerProvider(resource=Resource.get_empty(), shutdown_on_exit=False)
        self._sampler = provider.sampler  # from OTEL_TRACES_SAMPLER
        self._scope = InstrumentationScope("vel", vel_version())
        self._complained = float("-inf")
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._exporter = self._given or OTLPSpanExporter()
        self._resource = _resource()
        self._waiting: deque[Span] = deque()
        self._more = threading.Condition()
        self._sending = 0
        self._hurry = False
        self._thread: threading.Thread | None = None

    def samples(self, trace_id: int, remote: RemoteParent | None) -> bool:
        """Return whether the sampler accepts a trace. The answer is the same in all processes.

        `remote` is the span of another program that is the parent of the trace.
        """
        context = None
        if remote is not None:
            flags = SAMPLED if remote.sampled else TraceFlags(0)
            there = SpanContext(remote.trace_id, remote.span_id, is_remote=True, trace_flags=flags)
            context = set_span_in_context(NonRecordingSpan(there))
        return self._sampler.should_sample(context, trace_id, "invoke_agent").decision.is_sampled()

    def put(self, span: Span) -> None:
        """Add a span, or drop it if the queue is full. Does not block."""
        if self._pid != os.getpid():  # forked: the thread and its spans stay in the parent
            self._begin()
        with self._more:
            if len(self._waiting) >= self._size:
                full = True
            else:
                full = False
                self._waiting.append(span)
                if self._thread is None:
                    self._thread = threading.Thread(
                        target=self._work, name="vel-spans", daemon=True
                    )
                    self._thread.start()
                if len(self._waiting) >= self._batch:
                    self._more.notify_all()
        if full:
            self._on_count("queue_full", 1)

    def flush(self, seconds: float) -> bool:
        """Send the queued spans within `seconds`. Return False if some are left."""
        deadline = time.monotonic() + seconds
        if self._pid != os.getpid():
            return True
        with self._more:
            self._hurry = True
            self._more.notify_all()
            while self._waiting or self._sending:
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                self._more.wait(min(left, 0.1))
            self._hurry = False
            return not self._waiting and not self._sending

    def _work(self) -> None:
        while True:
            with self._more:
                if not self._hurry and len(self._waiting) < self._batch:
                    self._more.wait(self._delay)
                number = min(self._batch, len(self._waiting))
                batch = [self._waiting.popleft() for _ in range(number)]
                self._sending = len(batch)
            if batch:
                self._send(batch)
                with self._more:
                    self._sending = 0
                    self._more.notify_all()
            elif self._hurry:
                time.sleep(0.01)  # the thread in `flush` is about to see the empty queue

    def _send(self, batch: Sequence[Span]) -> None:
        try:
            result = self._exporter.export([self._readable(span) for span in batch])
            problem = "" if result is SpanExportResult.SUCCESS else "the collector took nothing"
        except Exception as error:  # noqa: BLE001  # no error of an exporter may affect a run
            problem = f"{type(error).__name__}"
        self._on_count("export_failed" if problem else "exported", len(batch))
        if problem and time.monotonic() - self._complained > COMPLAIN_SECONDS:
            self._complained = time.monotonic()
            logger.warning("%d spans were dropped: %s", len(batch), problem)

    def _readable(self, span: Span) -> ReadableSpan:
        attributes = {name: _sendable(value) for name, value in span.attributes.items()}
        status = Status(StatusCode.UNSET)
        if span.error:
            attributes["error.type"] = span.error if _CODE.fullmatch(span.error) else "_OTHER"
            status = Status(StatusCode.ERROR, _text(span.message) or None)
        parent = None
        if span.parent_id is not None:
            parent = SpanContext(span.trace_id, span.parent_id, False, SAMPLED)
        return ReadableSpan(
            name=_text(span.name)[:200],
            context=SpanContext(span.trace_id, span.span_id, False, SAMPLED),
            parent=parent,
            resource=self._resource,
            attributes=attributes,
            kind=SpanKind.CLIENT if span.is_client else SpanKind.INTERNAL,
            status=status,
            start_time=span.start,
            end_time=max(span.start, span.end),
            instrumentation_scope=self._scope,
        )


def _sendable(value: AttributeValue) -> AttributeValue:
    """Return `value` in a form that can be sent. Long texts and lists are cut.

    Otherwise one invalid value, for example from a server, would prevent the export of its batch.
    """
    if isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**63 else _text(value)
    if isinstance(value, list | tuple):
        return [_text(each) for each in value[:MOST_VALUES]]
    return _text(value)


def _text(value: object) -> str:
    return str(value)[:LONGEST].encode("utf-8", "replace").decode()


def _resource() -> Resource:
    """Return the attributes of this process.

    Those of OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES replace Vel's own.
    """
    own = Resource(
        {
            "service.name": "vel",
            "service.version": vel_version(),
            "host.name": socket.gethostname(),
            "process.pid": os.getpid(),
        }
    )
    return Resource.create(own.merge(OTELResourceDetector().detect()).attributes)
