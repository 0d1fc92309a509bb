"""The list of conversations: as a page, and in the left panel of a run."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST, require_safe

from agents.doors.web.navigation import NavigationEntry
from agents.doors.web.pages import PersonRequest, page
from agents.doors.web.run_panels import RunPanel
from agents.features.conversations.conversations import conversations_of, mark
from agents.hidden_text import visible
from agents.selectors.visible import threads_for
from agents.services.errors import InvalidRequest
from agents.services.threads import rename_thread

NAVIGATION = [
    NavigationEntry(
        "web:conversations", _("Conversations"), order=200, key="c", help=_("conversations")
    )
]
RUN_PANELS = [
    RunPanel(
        template="vel_conversations/sidebar.html",
        script="vel_conversations/sidebar.js",
        style="vel_conversations/conversations.css",
        place="left",
    ),
    RunPanel(
        template="vel_conversations/earlier.html",
        script="vel_conversations/earlier.js",
        place="above",
    ),
    RunPanel(template="vel_conversations/later.html", place="below"),
]
LONGEST = 200
NO_TITLE = _("(no title)")
MARKS = {
    "pin": {"pinned": True},
    "unpin": {"pinned": False},
    "archive": {"archived": True},
    "restore": {"archived": False},
}


@page
@require_safe
def conversations(request: PersonRequest) -> HttpResponse:
    """List the user's conversations. `?q=` has words to search for, `?archived=1` archived ones."""
    words = _words(request)
    archived = request.GET.get("archived") == "1"
    context = {
        "found": conversations_of(request.user, words, archived=archived),
        "words": words,
        "archived": archived,
        "older": f"{reverse('web:history')}?{urlencode({'q': words})}",
    }
    return render(request, "vel_conversations/list.html", context)


@page
@require_safe
def statuses(request: PersonRequest) -> JsonResponse:
    """Return the title of each conversation in the list and the status of its latest run.

    The keys are the ids of the threads.
    """
    found = conversations_of(request.user)
    return JsonResponse(
        {
            conversation.thread.pk: {
                "status": conversation.run.status,
                "text": conversation.run.get_status_display(),
                "title": visible(conversation.thread.title) or str(NO_TITLE),
            }
            for conversation in (*found.pinned, *found.others)
        }
    )


@page
@require_POST
def change(request: PersonRequest, thread_id: str) -> HttpResponse:
    """Pin, archive or rename a conversation, and go back to the page with the form.

    A script that archives or restores it gets JSON.
    """
    thread = get_object_or_404(threads_for(request.user), pk=thread_id)
    action = request.POST.get("action", "")
    if action == "rename":
        try:
            rename_thread(thread, request.POST.get("title", ""))
        except InvalidRequest as error:
            messages.error(request, error.message)
    elif action in MARKS:
        mark(thread, **MARKS[action])
        if request.headers.get("accept", "").startswith("application/json"):
            return JsonResponse({})
    else:
        messages.error(request, gettext("Unknown action. Choose one of the buttons."))
    return redirect(_back(request))


def _words(request: PersonRequest) -> str:
    return request.GET.get("q", "").replace("\0", "")[:LONGEST].strip()


def _back(request: PersonRequest) -> str:
    """Return the page that the form names, if it is one of this site."""
    back = request.POST.get("back", "")
    if url_has_allowed_host_and_scheme(back, allowed_hosts=None) and back.startswith("/"):
        return back
    return reverse("web:conversations")


urlpatterns = [
    path("conversations/", conversations, name="conversations"),
    path("conversations/statuses/", statuses, name="conversation-statuses"),
    path("conversations/<slug:thread_id>/", change, name="conversation-change"),
]
