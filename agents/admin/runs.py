"""The admin of runs: a list, a page with the details, and actions to cancel and resume."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.db.models.functions import Left, Length
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.admin.timeline import TURNS_PER_PAGE, last_turn, turns_of
from agents.doors.admin.bulk import Bulk, carry_out
from agents.doors.admin.journal import JournalAdmin, in_english, person, tag
from agents.doors.admin.numbers import cost, run_duration, span
from agents.doors.admin.text import shown
from agents.events.read import MAX_SEQ
from agents.hidden_text import visible
from agents.kernel.triggers import trigger_kinds
from agents.models import (
    POOL,
    ApprovalRequest,
    Message,
    Run,
    RunClock,
    RunEvent,
    Thread,
    ToolCall,
)
from agents.selectors.disk_space import waiting_for_space
from agents.selectors.held import is_held
from agents.selectors.queue import paths_of_runs
from agents.selectors.starters import of_starter, starters
from agents.selectors.visible import runs_for, unless_private
from agents.services.agent_definitions.actions import SCRIPTED
from agents.services.errors import ServiceError
from agents.services.runs.control import (
    OPERATE,
    cancel_for,
    resume_orphaned_family,
    resume_run,
)
from agents.states import ApprovalStatus, IllegalTransition, RunStatus

USERNAME = get_user_model().USERNAME_FIELD


class DelegationFilter(admin.SimpleListFilter):
    title = _("origin")
    parameter_name = "origin"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        begun = gettext("begun by a %(trigger)s")
        return [
            ("person", gettext("asked by a person")),
            *((kind.source, begun % {"trigger": kind.label}) for kind in trigger_kinds()),
            ("agent", gettext("delegated by an agent")),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Run]) -> QuerySet[Run]:
        kind = self.value()
        return queryset.filter(of_starter(kind)) if kind in starters() else queryset


@admin.register(Run)
class RunAdmin(JournalAdmin):
    """The admin of runs. Only `cancel_for` and `resume_run` change rows."""

    page_template = "admin/agents/run/timeline.html"
    list_display = [
        "id",
        "agent",
        "owner",
        "state",
        "source",
        "turns",
        "tokens",
        "cost",
        "created",
        "duration",
    ]
    list_filter = [
        "status",
        "wait_reason",
        DelegationFilter,
        "created_at",
        "source",
        "agent_version__agent",
    ]
    list_select_related = ["agent_version__agent", "owner", "clock"]
    search_fields = ["^id", "^thread__id", f"owner__{USERNAME}", "agent_version__agent__slug"]
    search_help_text = _("The beginning of a run's or a thread's id, an owner, or an agent's slug.")
    # The same order as created_at, since ids start with the time; the primary key has an index.
    ordering = ["-id"]
    actions = ["cancel_selected", "resume_selected"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        return runs_for(request.user)

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Return whether the user has the permission to cancel and resume runs.

        It is a permission of its own, because nobody can edit runs in the admin.
        """
        return bool(request.user.has_perm(OPERATE))

    @admin.display(description=_("agent"), ordering="agent_version__agent__slug")
    def agent(self, run: Run) -> str:
        name = f"{run.agent_version.agent.slug} v{run.agent_version.number}"
        return visible(f"{name} › {run.subagent}" if run.subagent else name)

    @admin.display(description=_("status"), ordering="status")
    def state(self, run: Run) -> SafeString:
        return run_tag(run)

    @admin.display(description=_("turns"), ordering="clock__turn")
    def turns(self, run: Run) -> int:
        return run.clock.turn

    @admin.display(description=_("tokens"))
    def tokens(self, run: Run) -> str:
        return number_format(run.clock.total_tokens, force_grouping=True)

    @admin.display(description=_("cost"), ordering="clock__cost_microusd")
    def cost(self, run: Run) -> str:
        return cost(run.clock)

    @admin.display(description=_("created"), ordering="created_at")
    def created(self, run: Run) -> str:
        return f"{timezone.localtime(run.created_at):%Y-%m-%d %H:%M:%S}"

    @admin.display(description=_("duration"))
    def duration(self, run: Run) -> str:
        return run_duration(run)

    @admin.action(description=_("Cancel the selected runs"), permissions=["operate"])
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[Run]) -> Any:
        """Cancel after a confirmation. The service checks the permission for each run."""

        def cancel(run: Run) -> str | Promise:
            outcome = self._cancel(request, run)
            self.log_change(request, run, in_english(outcome))
            return outcome

        return carry_out(self, request, self.chosen(request, queryset), _CANCEL, cancel, _name)

    @admin.action(description=_("Resume the selected runs"), permissions=["operate"])
    def resume_selected(self, request: HttpRequest, queryset: QuerySet[Run]) -> None:
        for run in self.chosen(request, queryset):
            self._operate(request, run, self._resume)

    def act_on_row(self, request: HttpRequest, row: Run) -> HttpResponse:
        """Handle the buttons of a run's page."""
        if not self.has_operate_permission(request):
            raise PermissionDenied
        operations = {"cancel": self._cancel, "resume": self._resume}
        operation = operations.get(request.POST.get("operation", ""))
        if operation is not None:
            self._operate(request, row, operation)
        return HttpResponseRedirect(request.path)

    def _operate(
        self, request: HttpRequest, run: Run, operation: Callable[[HttpRequest, Run], str | Promise]
    ) -> None:
        """Apply an operation to one run and add a message. A refusal does not stop the others."""
        try:
            outcome = operation(request, run)
        except (ServiceError, IllegalTransition) as error:
            self.report(request, f"{_name(run)}: {error}", failed=True)
            return
        self.log_change(request, run, in_english(outcome))
        self.report(request, f"{_name(run)}: {outcome}.")

    def _cancel(self, request: HttpRequest, run: Run) -> str | Promise:
        before = run.status
        run = cancel_for(person(request), run, reason="cancelled in the admin", operate=True)
        if run.status != RunStatus.CANCELLED:
            if run.status == RunStatus.RUNNING:
                return _("the worker was asked to stop it")
            return format_lazy(_("had ended already ({status})"), status=run.status)
        return _("was cancelled already") if before == RunStatus.CANCELLED else _("cancelled")

    def _resume(self, request: HttpRequest, run: Run) -> str | Promise:
        # Of a run that waits for its subagents, these are resumed, unless workers have them.
        resume = resume_run if run.executor == POOL else resume_orphaned_family
        resume(run.pk, executor=POOL)
        return _("handed to the workers")

    def page_context(self, request: HttpRequest, row: Run) -> dict[str, Any]:
        run = (
            Run.objects.select_related("agent_version__agent", "owner", "thread", "parent", "clock")
        ).get(pk=row.pk)
        pages = Paginator(range(1, last_turn(run) + 1), TURNS_PER_PAGE)
        page = pages.get_page(request.GET.get("turns"))
        # Turn 0 is the person's message.
        first = page.start_index() if page.has_previous() else 0
        pending = ApprovalRequest.objects.filter(
            unless_private(person(request)), run=run, status=ApprovalStatus.PENDING
        )
        return {
            "title": _name(run),
            "run": run,
            "state": run_tag(run),
            "spec": run.spec,
            "is_scripted": run.spec.get("provider") == SCRIPTED,
            "thread_title": shown(str(run.thread)),
            "error": shown(run.error_message) if run.error_message else None,
            "duration": run_duration(run),
            "active": span(timedelta(milliseconds=run.clock.active_ms)),
            "cost": cost(run.clock),
            "tokens": _tokens(run.clock),
            "turns": turns_of([run], first=first, last=page.end_index())[run.pk],
            "page": page,
            "pending": pending.order_by("created_at"),
            "above": visible(" › ".join(paths_of_runs([run])[run.pk])) if run.parent_id else "",
            "children": [
                {
                    "run": child,
                    "name": visible(child.subagent),
                    "task": visible(child.thread.title),
                    "state": run_tag(child),
                    "duration": run_duration(child),
                }
                for child in run.children.select_related("thread").order_by("id")
            ],
            "can_operate": self.has_operate_permission(request),
            "can_see_approvals": self._sees(request, ApprovalRequest),
            "can_see_thread": self._sees(request, Thread),
            **events_page(run, request.GET.get("before", "")),
        }

    def _sees(self, request: HttpRequest, model: type) -> bool:
        return self.admin_site.get_model_admin(model).has_view_permission(request)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.whole_text)
        name = "agents_run_text"
        return [
            path("<str:run_id>/text/<str:part>/<int:pk>/", view, name=name),
            *super().get_urls(),
        ]

    def whole_text(self, request: HttpRequest, run_id: str, part: str, pk: int) -> HttpResponse:
        """Download one message, input or result in full."""
        run = self.get_queryset(request).filter(pk=run_id).first()
        if not self.has_view_permission(request, run):
            raise PermissionDenied
        if run is None:
            raise Http404
        return whole_text_response(run, part, pk)


_CANCEL = Bulk(
    "cancel_selected",
    _("Cancel %(count)s %(rows)s"),
    _("%(failed)s of %(count)s could not be cancelled: %(problems)s"),
    _("Their subagents end too, and their approval requests are withdrawn. This cannot be undone."),
    is_dangerous=True,
)


def _name(run: Run) -> str:
    return gettext("Run %(id)s") % {"id": run.pk}


def _tokens(clock: RunClock) -> str:
    numbers = {
        "input": clock.input_tokens,
        "output": clock.output_tokens,
        "read": clock.cache_read_tokens,
        "written": clock.cache_write_tokens,
    }
    text = gettext("%(input)s in, %(output)s out, %(read)s from cache, %(written)s to cache")
    return text % {
        name: number_format(number, force_grouping=True) for name, number in numbers.items()
    }


def run_tag(run: Run) -> SafeString:
    """Return the run's status, with the wait reason."""
    status = tag(run.status, run.get_status_display())
    if is_held(run):
        held = gettext("held after a restore")
        return format_html('{} <span class="vel-quiet">{}</span>', status, held)
    if space := waiting_for_space(run):
        return format_html('{} <span class="vel-quiet">{}</span>', status, space)
    if not run.wait_reason:
        return status
    reason = gettext("for %(reason)s") % {"reason": run.get_wait_reason_display()}
    return format_html('{} <span class="vel-quiet">{}</span>', status, reason)


EVENTS_PER_PAGE = 200
EVENT_CHARACTERS = 600
_PARTS_OF_CALLS = ("input", "edited_input", "result")


def events_page(run: Run, before: str) -> dict[str, Any]:
    """Return the last page of the run's events, or the page before the seq `before`.

    A `before` that is not a number is ignored.
    """
    rows = RunEvent.objects.filter(run=run)
    if before.isdecimal() and len(before) <= len(str(MAX_SEQ)):
        rows = rows.filter(seq__lt=min(int(before), MAX_SEQ))
    found = (
        rows.defer("data")
        .annotate(start=Left("data", EVENT_CHARACTERS), size=Length("data"))
        .order_by("-seq")[:EVENTS_PER_PAGE]
    )
    events = [(event, shown(event.start, size=event.size)) for event in reversed(found)]
    return {
        "events": events,
        "events_before": before,
        "older_events": events[0][0].seq if events and events[0][0].seq > 1 else None,
    }


def whole_text_response(run: Run, part: str, pk: int) -> HttpResponse:
    """Return the JSON of a message, or of a call's input or result, as a download.

    Raises `Http404` if the run has no such text.
    """
    if part == "message":
        texts: QuerySet[Any, Any] = Message.objects.filter(run=run, pk=pk).values_list(
            "content", flat=True
        )
    elif part in _PARTS_OF_CALLS:
        texts = ToolCall.objects.filter(run=run, pk=pk).values_list(part, flat=True)
    else:
        raise Http404
    text = texts.first()
    if text is None:
        raise Http404
    return HttpResponse(
        text.encode("utf-8", "backslashreplace"),
        headers={
            "Content-Type": "application/json",
            "Content-Disposition": f'attachment; filename="{part}-{pk}.json"',
            "Content-Security-Policy": "default-src 'none'; sandbox",
            "X-Content-Type-Options": "nosniff",
        },
    )
