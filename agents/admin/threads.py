"""The admin of threads, with the whole conversation."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.admin.runs import run_tag
from agents.admin.timeline import TURNS_PER_PAGE, Turn, turns_of
from agents.doors.admin.bulk import Bulk, carry_out
from agents.doors.admin.journal import JournalAdmin, person
from agents.doors.admin.text import shown
from agents.doors.admin.thread_sections import thread_sections
from agents.hidden_text import visible
from agents.models import Run, Thread, WorkspaceSnapshot
from agents.selectors.steps import step_of
from agents.selectors.visible import VIEW_ALL, threads_for
from agents.services.agent_definitions.actions import SCRIPTED
from agents.services.erasure.actions import erase_thread
from agents.services.errors import ServiceError
from agents.services.files.restoring import restore_workspace
from agents.settings import DataSettings
from sandbox.directories.tree_size import tree_size

RUNS_PER_PAGE = 10
SHOWN_STEPS = 50
RESTORE = "agents.restore_workspace"
ERASE = "agents.erase_thread"
_ERASE = Bulk(
    "erase_selected",
    _("Erase %(count)s %(rows)s"),
    _("%(failed)s of %(count)s could not be erased: %(problems)s"),
    _(
        "All messages, files, runs and subagents of the threads are deleted. This cannot be "
        "undone. Approved memory stays with its agent."
    ),
    is_dangerous=True,
)


@admin.register(Thread)
class ThreadAdmin(JournalAdmin):
    page_template = "admin/agents/thread/transcript.html"
    list_display = ["shown_title", "id", "agent", "owner", "key", "run_count", "updated_at"]
    list_filter = ["created_at", "agent"]
    list_select_related = ["agent", "owner"]
    search_fields = [
        "^id",
        "title",
        "=key",
        "agent__slug",
        f"owner__{get_user_model().USERNAME_FIELD}",
    ]
    search_help_text = _(
        "The beginning of an id, words of a title, a session key, an agent, an owner."
    )
    ordering = ["-id"]
    actions = ["erase_selected"]

    def has_erase_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm(ERASE))

    @admin.action(description=_("Erase the selected threads"), permissions=["erase"])
    def erase_selected(self, request: HttpRequest, queryset: QuerySet[Thread]) -> Any:
        """Erase after a confirmation. Not logged by Django, which would keep titles of threads."""

        def erase(thread: Thread) -> str:
            erase_thread(thread.pk, by=person(request))
            return gettext("erased")

        return carry_out(self, request, self.chosen(request, queryset), _ERASE, erase, _name)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Thread]:
        everyones = request.user.has_perm(VIEW_ALL)
        # A subagent's thread is shown on the page of its run.
        threads = Thread.objects.filter(root=None) if everyones else threads_for(request.user)
        # A subquery: a join with GROUP BY would count the runs of all threads, not of one page.
        counted = Run.objects.filter(thread=OuterRef("pk")).order_by().values("thread")
        total = counted.annotate(total=Count("pk")).values("total")
        return threads.annotate(run_total=Coalesce(Subquery(total), 0))

    @admin.display(description=_("title"), ordering="title")
    def shown_title(self, thread: Thread) -> str:
        return visible(thread.title) or gettext("(no title)")

    @admin.display(description=_("runs"), ordering="run_total")
    def run_count(self, thread: Any) -> int:
        return thread.run_total

    def page_context(self, request: HttpRequest, row: Thread) -> dict[str, Any]:
        runs = (
            Run.objects.filter(thread=row)
            .select_related("agent_version__agent", "parent")
            .order_by("number")
        )
        pages = Paginator(runs, RUNS_PER_PAGE)
        # Show the latest messages first.
        page = pages.get_page(request.GET.get("page", pages.num_pages))
        of_page = list(page)
        turns = turns_of(of_page)
        shown_runs = [_shown_run(run, turns[run.pk]) for run in of_page]
        return {
            "title": _name(row),
            "thread": row,
            "thread_title": shown(row.title),
            "key": shown(row.key or ""),
            "workspace": shown(row.workspace_path or str(DataSettings.now().workspaces / row.pk)),
            "workspace_size": tree_size(DataSettings.now().workspaces / row.pk, seconds=1.0),
            "steps": _shown_steps(row),
            "may_restore": request.user.has_perm(RESTORE),
            "can_see_runs": self.admin_site.get_model_admin(Run).has_view_permission(request),
            "sections": thread_sections(row),
            "page": page,
            "turn_limit": TURNS_PER_PAGE,
            "runs": shown_runs,
            "is_scripted": any(run["is_scripted"] for run in shown_runs),
        }

    def act_on_row(self, request: HttpRequest, row: Thread) -> HttpResponse | dict[str, Any]:
        """Restore the files, after a confirmation."""
        if "step" not in request.POST or not request.user.has_perm(RESTORE):
            raise PermissionDenied
        step = step_of(row.pk, request.POST.get("step"))
        side = request.POST.get("to")
        if step is None or side not in ("before", "after"):
            self.report(request, gettext("There is no such snapshot any more."), failed=True)
            return HttpResponseRedirect(request.path)
        if request.POST.get("confirmed") != "yes":
            return {"confirm": step, "confirm_side": side}
        try:
            state = step.base if side == "before" else step.manifest
            done = restore_workspace(row, state, by=person(request))
        except ServiceError as error:
            self.report(request, error.message, failed=True)
        else:
            text = gettext("The files were restored: %(written)s written, %(deleted)s deleted.")
            if done.failed:
                text = gettext(
                    "The files were restored: %(written)s written, %(deleted)s deleted. "
                    "%(failed)s could not be restored."
                )
            values = {
                "written": done.written,
                "deleted": done.deleted,
                "failed": len(done.failed),
            }
            self.report(request, text % values, failed=bool(done.failed))
        return HttpResponseRedirect(request.path)


def _name(thread: Thread) -> str:
    return gettext("Thread %(id)s") % {"id": thread.pk}


def _shown_steps(thread: Thread) -> list[dict[str, Any]]:
    steps = WorkspaceSnapshot.objects.filter(thread=thread).select_related("run", "by")
    return [
        {"row": row, "by": visible(str(row.by or ""))}
        for row in steps.order_by("-pk")[:SHOWN_STEPS]
    ]


def _shown_run(run: Run, turns: list[Turn]) -> dict[str, Any]:
    return {
        "run": run,
        "state": run_tag(run),
        "turns": turns,
        "error": shown(run.error_message),
        "is_scripted": run.spec.get("provider") == SCRIPTED,
        "is_cut": bool(turns) and turns[-1].number >= TURNS_PER_PAGE,
    }
