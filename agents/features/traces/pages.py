"""The page with the trace of a run, and the link to it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import path
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from agents.doors.web.pages import PersonRequest, page
from agents.doors.web.run_panels import RunPanel
from agents.features.traces.spans import Span
from agents.features.traces.traces import Row, Trace, trace_of
from agents.selectors.visible import watchable_runs_for

RUN_PANELS = [RunPanel(template="vel_traces/run_panel.html")]
LEGEND = {
    "model": _("Models"),
    "tool": _("Tools"),
    "wait": _("Waiting time"),
    "queue": _("Queue"),
}
WAITS = {"approval": _("waiting for a decision"), "children": _("waiting for subagents")}
LEAST_WIDTH = 0.4
"""The width of the shortest bar, in percent."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A row of the page. `left` and `width` are percents of the trace.

    `offset` is the time from the start of the trace to the span.
    """

    row: Row
    label: str
    duration: str
    offset: str
    left: str
    width: str

    @property
    def span(self) -> Span:
        return self.row.span

    @property
    def is_active(self) -> bool:
        """Return whether the run is working on it; false for waits."""
        return self.span.status == "running" and self.span.kind in ("model", "tool")

    @property
    def place(self) -> str:
        """Return the URL fragment of the span's place in the transcript; empty if it has none."""
        if self.span.kind == "tool":
            return f"call={self.span.call_id}"
        return f"step={self.span.turn}" if self.span.turn else ""


@page
@require_safe
def trace(request: PersonRequest, run_id: str) -> HttpResponse:
    """Show the trace of a run as a table with bars."""
    runs = watchable_runs_for(request.user).select_related("thread", "agent_version", "owner")
    run = get_object_or_404(runs, pk=run_id)
    now = timezone.now()
    found = trace_of(run, request.user, now)
    context = {
        "run": run,
        "trace": found,
        "bars": [_bar(row, found, now) for row in found.rows],
        "whole": written(found.end - found.start),
        "times": [
            (kind, label, written(found.times[kind]))
            for kind, label in LEGEND.items()
            if kind in found.times
        ],
        "may_fork": run.owner_id == request.user.pk and run.parent_id is None,
    }
    return render(request, "vel_traces/trace.html", context)


def written(length: timedelta) -> str:
    """Return a length of time as text: `340 ms`, `2.5 s`, `3 min 20 s` or `2 h 5 min`."""
    seconds = max(length.total_seconds(), 0)
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{number_format(round(seconds, 1), 1)} s"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
    return f"{seconds // 3600:.0f} h {seconds % 3600 // 60:.0f} min"


def _bar(row: Row, found: Trace, now: datetime) -> Bar:
    span = row.span
    whole = (found.end - found.start).total_seconds() or 1
    length = (span.end or now) - span.start
    offset = span.start - found.start
    left = 100 * offset.total_seconds() / whole
    width = max(100 * length.total_seconds() / whole, LEAST_WIDTH)
    left = min(max(left, 0), 100 - LEAST_WIDTH)
    return Bar(
        row=row,
        label=_label(span),
        duration=written(length),
        offset=written(offset),
        left=f"{left:.2f}",
        width=f"{min(width, 100 - left):.2f}",
    )


def _label(span: Span) -> str:
    if span.kind == "queue":
        return gettext("waiting for a worker")
    if span.kind == "wait":
        return str(WAITS.get(span.name, gettext("waiting: %(name)s") % {"name": span.name}))
    return span.name or gettext("model")


urlpatterns = [path("runs/<slug:run_id>/trace/", trace, name="run-trace")]
