"""The page Knowledge: an agent's memory files, their history, and forms to change them.

The page makes changes only through `memory.actions.changes`, and works without scripts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path as url_path
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from agents.doors.web.navigation import AGENT, NavigationEntry
from agents.doors.web.pages import PersonRequest, page
from agents.doors.web.tool_forms import ToolForm
from agents.hidden_text import escaped_text, unescaped_text, visible
from agents.models import Agent
from agents.review import Review
from agents.review.spans import marked_text
from agents.selectors.visible import agents_for, approvals_for
from agents.services.errors import Conflict, InvalidRequest, ServiceError
from memory.actions.changes import delete_file, restore_revision, write_file
from memory.actions.purge import purge_history
from memory.errors import NoSuchFile
from memory.folders import RevisionEntry
from memory.limits import TOTAL_BYTES, WARN_SHARE
from memory.paths import PERSONAL, READ_ONLY, InvalidPath, is_personal
from memory.queries.files import (
    ShownFile,
    list_memory_entries,
    memory_bytes,
    memory_file,
    memory_revisions,
    revision_content,
)
from memory.queries.requests import pending_memory_requests
from memory.queries.rights import may_change_file, may_change_memory
from memory.review import memory_edit_review, purged_review
from text_scanner import scan

SOURCE = "web"
SHOWN_THREADS = 20
REVISIONS_A_PAGE = 50
REASON_CHARACTERS = 2_000
SHOWN_REQUESTS = 50


@page
@require_http_methods(["GET", "HEAD", "POST"])
def knowledge(request: PersonRequest, slug: str) -> HttpResponse:
    """Show the files; `?path=` shows one, `revision=` one of its changes, `edit=1` a form.

    `?edit=1` alone is the form for a new file. A POST with `action` save, delete,
    restore or purge changes the file at `path`.
    """
    agent = get_object_or_404(agents_for(request.user), slug=slug)
    if request.method == "POST":
        return _change(request, agent)
    path = request.GET.get("path", "")
    context = _overview(request, agent)
    if path:
        context |= _one_file(request, agent, path)
    if "edit" in request.GET and path not in READ_ONLY and (context["may_change"] or not path):
        context["form"] = _form_of(context.get("file"))
    return render(request, "memory/knowledge.html", context)


def _overview(request: PersonRequest, agent: Agent) -> dict[str, Any]:
    entries = list_memory_entries(agent.pk, person_id=request.user.pk)
    used = memory_bytes(agent.pk)
    waiting = pending_memory_requests(request.user, agent.pk)
    return {
        "agent": agent,
        "may_change": may_change_memory(request.user, agent),
        "groups": [
            (gettext("Settings"), [entry for entry in entries if entry.path in READ_ONLY]),
            (
                gettext("Knowledge"),
                [entry for entry in entries if entry.path.startswith("knowledge/")],
            ),
            (gettext("Skills"), [entry for entry in entries if entry.path.startswith("skills/")]),
            (gettext("Only for you"), [entry for entry in entries if is_personal(entry.path)]),
        ],
        "used": used,
        "advised": TOTAL_BYTES,
        "warn_from": int(TOTAL_BYTES * WARN_SHARE),
        "percent": round(100 * used / TOTAL_BYTES),
        "waiting": waiting[:SHOWN_REQUESTS],
        "more_waiting": max(0, waiting.count() - SHOWN_REQUESTS),
        "reason_characters": REASON_CHARACTERS,
    }


def _one_file(request: PersonRequest, agent: Agent, path: str) -> dict[str, Any]:
    query = request.GET
    try:
        file = memory_file(agent.pk, path, request.user.pk)
        revisions = memory_revisions(agent.pk, path, request.user.pk)
    except InvalidPath:
        raise Http404("This path is invalid in a memory.") from None
    if file is None and not revisions:
        raise Http404("This file never existed.")
    displayed = Paginator(revisions, REVISIONS_A_PAGE).get_page(query.get("page"))
    approval_ids = [entry.approval_id for entry in displayed if entry.approval_id]
    context: dict[str, Any] = {
        "path": path,
        "file": file,
        "is_read_only": path in READ_ONLY,
        "may_change": may_change_file(request.user, agent, path),
        "text": marked_text(file.content, scan(file.content)) if file else None,
        "revisions": displayed,
        "linked": set(
            approvals_for(request.user).filter(pk__in=approval_ids).values_list("pk", flat=True)
        ),
        "latest": revisions[0].number if revisions else 0,
        "previous": revisions[1].number
        if len(revisions) > 1 and not revisions[1].is_purged
        else None,
        "may_purge": path.startswith(("knowledge/", f"{PERSONAL}/"))
        and any(not entry.is_purged for entry in revisions[1 if file else 0 :]),
    }
    if "revision" in query:
        found = [entry for entry in revisions if str(entry.number) == query["revision"]]
        if not found:
            raise Http404("The file has no such revision.")
        context |= {"revision": found[0], "review": _review_of(request, agent, path, found[0])}
    return context


def _review_of(request: PersonRequest, agent: Agent, path: str, entry: RevisionEntry) -> Review:
    """Return the difference between a revision and the revision before it, for display."""
    if entry.is_purged:
        return purged_review(path, entry.operation)
    try:
        before = revision_content(agent.pk, path, entry.number - 1, request.user.pk)
    except NoSuchFile:
        before = None
    after = revision_content(agent.pk, path, entry.number, request.user.pk)
    return memory_edit_review(path, entry.operation, before, after, scan(after or ""))


def _form_of(file: ShownFile | None) -> dict[str, Any]:
    return {
        "path": file.path if file else "",
        "content": escaped_text(file.content) if file else "",
        "base": file.revision if file else 0,
        "is_new": file is None,
    }


def _change(request: PersonRequest, agent: Agent) -> HttpResponse:
    form = request.POST
    path = form.get("path", "")
    try:
        message = _carry_out(request, agent, path)
    except ServiceError as error:
        if form.get("action") == "save":
            return _show_again(request, agent, path, error)
        messages.error(request, visible(error.message))
    else:
        messages.success(request, message)
    return redirect(_url(request, agent, path))


def _carry_out(request: PersonRequest, agent: Agent, path: str) -> str:
    """Carry out the action of the posted form, and return a message for the user."""
    form = request.POST
    match form.get("action"):
        case "save":
            # Browsers send line breaks of a form as CR LF.
            content = unescaped_text(form.get("content", "").replace("\r\n", "\n"))
            number = write_file(
                agent,
                path,
                content,
                by=request.user,
                base_revision=_number(form.get("base", "")),
                source=SOURCE,
                reason=form.get("reason", "")[:REASON_CHARACTERS],
            )
            return gettext("Saved as revision %(number)s.") % {"number": number}
        case "delete":
            base = _number(form.get("base", ""))
            delete_file(agent, path, by=request.user, base_revision=base, source=SOURCE)
            return gettext("Deleted. Its history stays, and any state can be restored.")
        case "restore":
            number = _number(form.get("revision", ""))
            seen = _number(form["base"]) if "base" in form else None
            restored = restore_revision(
                agent, path, number, by=request.user, base_revision=seen, source=SOURCE
            )
            text = gettext("Restored revision %(number)s as revision %(restored)s.")
            return text % {"number": number, "restored": restored}
        case "purge":
            if form.get("sure") != "yes":
                problem = gettext("Confirm that the earlier contents should be erased.")
                raise InvalidRequest(problem)
            done = purge_history(agent, path, by=request.user, source=SOURCE)
            return _purged(done.revisions, done.threads)
    raise InvalidRequest(gettext("Choose save, delete, restore or purge."))


def _purged(revisions: int, threads: Sequence[str]) -> str:
    values = {
        "revisions": revisions,
        "threads": len(threads),
        "ids": ", ".join(threads[:SHOWN_THREADS]),
    }
    if not threads:
        return gettext("Purged: the contents of %(revisions)s revisions are erased.") % values
    text = gettext(
        "Purged: the contents of %(revisions)s revisions are erased. %(threads)s conversations "
        "still contain texts of the file: erase them if they are not needed. Their ids: %(ids)s"
    )
    return text % values


def _show_again(
    request: PersonRequest, agent: Agent, path: str, error: ServiceError
) -> HttpResponse:
    """Show the form again with the posted text and the error."""
    form = request.POST
    context = _overview(request, agent)
    context["form"] = {
        "path": path,
        "content": form.get("content", "").replace("\r\n", "\n"),
        "reason": form.get("reason", ""),
        "base": form.get("base", ""),
        "is_new": form.get("base") == "0",
        "problem": error.message,
        "is_stale": isinstance(error, Conflict),
    }
    return render(request, "memory/knowledge.html", context, status=error.http_status)


def _url(request: PersonRequest, agent: Agent, path: str) -> str:
    """Return the URL of a file's page, or of the list if there is no such file."""
    url = reverse("web:knowledge", args=[agent.slug])
    try:
        has_history = bool(memory_revisions(agent.pk, path, request.user.pk))
    except InvalidPath:
        has_history = False
    return f"{url}?{urlencode({'path': path})}" if has_history else url


def _number(text: str) -> int:
    """Return `text` as the number of a revision.

    Raises `InvalidRequest` for an invalid number, which must not mean "no number".
    """
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return int(text)
    raise InvalidRequest(gettext("The form is incomplete: reload the file."))


urlpatterns = [url_path("agents/<slug:slug>/knowledge/", knowledge, name="knowledge")]
NAVIGATION = [NavigationEntry("web:knowledge", _("Knowledge"), place=AGENT, order=100)]
TOOL_FORMS = [
    ToolForm("read_memory", words=(_("read the memory"), _("read the memory # times"))),
    ToolForm("list_memory", words=(_("listed the memory"), _("listed the memory # times"))),
]
