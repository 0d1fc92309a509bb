"""The pages of approvals: the queue, one request, and the forms that decide."""

from __future__ import annotations

from django.urls import path
from django.utils.translation import gettext_lazy as _

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
        "web:approvals",
        _("Approvals"),
        order=200,
        key="a",
        help=_("approvals"),
        counts_waiting=True,
    )
]
SHORTCUTS = [
    Shortcut(("j", "k"), _("next and previous request")),
    Shortcut(("a",), _("approve the request")),
    Shortcut(("r",), _("reject it: enter a reason, then press Ctrl Enter")),
    Shortcut(("e",), _("edit it")),
    Shortcut(("x",), _("select or deselect it, in the list of requests")),
    Shortcut(("o",), _("open its run")),
]
