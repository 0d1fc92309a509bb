"""The pages of approvals: the queue, one request, and the forms that decide."""

from __future__ import annotations

from django.urls import path

from agents.doors.web.navigation import NavigationEntry, Shortcut
from agents.features.approvals.pages import deciding, queue

urlpatterns = [
    path("approvals/", queue.queue, name="approvals"),
    path("approvals/live/", queue.live, name="approvals-live"),
    path("approvals/waiting/", queue.waiting, name="approvals-waiting"),
    path("approvals/decide/", deciding.decide_several, name="approvals-decide"),
    path("approvals/<slug:request_id>/", queue.one, name="approval"),
    path("approvals/<slug:request_id>/decide/", deciding.decide_one, name="approval-decide"),
]
NAVIGATION = [
    NavigationEntry(
        "web:approvals", "Approvals", order=200, key="a", help="approvals", counts_waiting=True
    )
]
SHORTCUTS = [
    Shortcut(("j", "k"), "next and previous request"),
    Shortcut(("a",), "approve the request"),
    Shortcut(("r",), "reject it: enter a reason, then press Ctrl Enter"),
    Shortcut(("e",), "edit it"),
    Shortcut(("x",), "select or deselect it, in the list of requests"),
    Shortcut(("o",), "open its run"),
]
