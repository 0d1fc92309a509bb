"""Spans that are created from rows: the run, its approval requests and lost tool calls.

They are created when the run has ended, by any process that handles the end. Crashes cannot lose
them, and no process has to watch the whole run.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import TYPE_CHECKING

from agents.models import (
    ApprovalRequest,
    Message,
    MessageRole,
    RemoteTrace,
    Run,
    RunClock,
    ToolCall,
)
from agents.states import ApprovalStatus, RunStatus, ToolCallStatus
from agents.telemetry import spans
from agents.telemetry.ids import RemoteParent, parse_traceparent, span_id_of, trace_id_of
from agents.telemetry.spans import AttributeValue, Span, Trace, nanoseconds, provider_name
from agents.telemetry.tool_watch import tool_span_id

if TYPE_CHECKING:
    from agents.telemetry.otlp import SpanQueue

MOST = 2_000
"""Maximum number of spans of approval requests, and of lost calls, for one run."""


def trace_of(run: Run, spans: SpanQueue) -> Trace:
    """Return the trace of a run. Queries its ancestors and the `traceparent` of the first one."""
    root = run
    while root.parent is not None:
        root = root.parent
    header = RemoteTrace.objects.filter(run=root.pk).values_list("traceparent", flat=True).first()
    remote: RemoteParent | None = parse_traceparent(header) if header else None
    trace_id = remote.trace_id if remote is not None else trace_id_of(root.pk)
    return Trace(
        trace_id=trace_id,
        span_id=run_span_id(run.pk),
        parent_id=_parent_id(run, remote),
        sampled=spans.samples(trace_id, remote),
    )


def run_span_id(run_id: str) -> int:
    return span_id_of("run", run_id)


def _parent_id(run: Run, remote: RemoteParent | None) -> int | None:
    if run.parent_id is None:
        return remote.span_id if remote is not None else None
    if run.parent_call is None:
        return run_span_id(run.parent_id)
    call = run.parent_call
    return tool_span_id(call.run_id, call.turn, call.position)


def spans_of_ended_run(
    run: Run, spans: SpanQueue, outliving: Collection[str], with_content: bool
) -> list[Span]:
    """Return all spans that are created from rows. Empty if the trace is not sampled.

    `outliving` are the tools whose calls can continue in another claim. With `with_content`, the
    spans contain messages, inputs and results.
    """
    trace = trace_of(run, spans)
    if not trace.sampled:
        return []
    own = _run_span(run, trace, with_content=with_content)
    calls = _calls(run, trace, outliving, with_content=with_content)
    return [*_waits(run, trace), *calls, own]


def _run_span(run: Run, trace: Trace, *, with_content: bool) -> Span:
    spec = run.spec
    clock = RunClock.objects.get(run=run)
    attributes: dict[str, AttributeValue] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": provider_name(spec["provider"]),
        "gen_ai.request.model": spec["model"],
        "gen_ai.agent.name": spec["slug"],
        "gen_ai.agent.id": run.agent_version.agent_id,
        "gen_ai.agent.version": str(run.agent_version.number),
        "gen_ai.conversation.id": run.thread_id,
        "gen_ai.usage.input_tokens": clock.input_tokens
        + clock.cache_read_tokens
        + clock.cache_write_tokens,
        "gen_ai.usage.output_tokens": clock.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": clock.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": clock.cache_write_tokens,
        "vel.run.id": run.pk,
        "vel.run.status": run.status,
        "vel.run.source": run.source,
        "vel.run.steps": clock.turn,
        "vel.run.claims": clock.fence,
        "vel.run.active_ms": clock.active_ms,
        "vel.user.id": run.owner_id,
    }
    if run.started_at is not None:
        waited = (run.started_at - run.created_at).total_seconds()
        attributes["vel.run.pick_up_seconds"] = max(0.0, waited)
    if run.status == RunStatus.COMPLETED:  # otherwise it is not from a model
        attributes["gen_ai.response.finish_reasons"] = [run.finish_reason]
    if clock.cost_known:
        attributes["vel.run.cost_dollars"] = clock.cost_microusd / 1e6
    error = message = ""
    if run.status == RunStatus.FAILED:
        error = run.error_code or "failed"
        message = spans.short(run.error_message) if with_content else ""
    if with_content:
        attributes |= _said(run)
    ended = nanoseconds(run.ended_at) if run.ended_at is not None else time.time_ns()
    return Span(
        f"invoke_agent {spec['slug']}", trace.trace_id, trace.span_id, trace.parent_id,
        nanoseconds(run.created_at), ended, attributes, error=error, message=message,
    )  # fmt: skip


def _said(run: Run) -> dict[str, AttributeValue]:
    found: dict[str, AttributeValue] = {}
    first = Message.objects.filter(run=run, turn=0, role=MessageRole.USER).first()
    last = Message.objects.filter(run=run, role=MessageRole.ASSISTANT).order_by("-turn").first()
    if first is not None:
        found["gen_ai.input.messages"] = spans.user_message(first.blocks)
    if last is not None:
        found["gen_ai.output.messages"] = spans.reply_message(last.blocks, last.stop_reason)
    return found


def _waits(run: Run, trace: Trace) -> list[Span]:
    """Return a span for each decided approval request, from its creation to the decision."""
    found = []
    requests = ApprovalRequest.objects.filter(run=run).select_related("tool_call")
    for asked in requests.exclude(status=ApprovalStatus.PENDING).order_by("pk")[:MOST]:
        end = asked.decided_at or run.ended_at or asked.created_at
        call = asked.tool_call
        attributes: dict[str, AttributeValue] = {
            "gen_ai.conversation.id": run.thread_id,
            "vel.run.id": run.pk,
            "vel.approval.id": asked.pk,
            "vel.approval.kind": asked.kind,
            "vel.approval.status": asked.status,
            "vel.approval.decision": asked.decision,
        }
        if call is not None:
            attributes |= {"gen_ai.tool.name": call.tool, "gen_ai.tool.call.id": call.call_id}
        found.append(
            Span(
                "vel.approval",
                trace.trace_id,
                span_id_of("approval", asked.pk),
                trace.span_id,
                nanoseconds(asked.created_at),
                nanoseconds(end),
                attributes,
            )
        )
    return found


def _calls(run: Run, trace: Trace, outliving: Collection[str], *, with_content: bool) -> list[Span]:
    """Return spans of calls that their driver could not record: it died, or released the run."""
    calls = ToolCall.objects.filter(run=run, started_at__isnull=False)
    lost = calls.filter(status=ToolCallStatus.INTERRUPTED)
    delegating = calls.filter(tool__in=outliving).exclude(status=ToolCallStatus.INTERRUPTED)
    by_place = {(call.turn, call.position): call for call in (*lost[:MOST], *delegating[:MOST])}
    found = []
    for place, call in sorted(by_place.items()):
        attributes: dict[str, AttributeValue] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.agent.name": run.spec["slug"],
            "gen_ai.conversation.id": run.thread_id,
            "gen_ai.tool.name": call.tool,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call.call_id,
            "vel.run.id": run.pk,
            "vel.tool.status": call.status,
        }
        if with_content:
            attributes |= spans.of_tool_call(call.edited_input or call.input, call.result_content)
        assert call.started_at is not None
        end = call.finished_at or run.ended_at or call.started_at
        error = (call.code or call.status) if call.is_error else ""
        found.append(
            Span(
                f"execute_tool {call.tool}",
                trace.trace_id,
                tool_span_id(run.pk, *place),
                trace.span_id,
                nanoseconds(call.started_at),
                nanoseconds(end),
                attributes,
                error=error,
            )
        )
    return found
