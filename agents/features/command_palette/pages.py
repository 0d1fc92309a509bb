"""The data of the palette, and its script on every page."""

from __future__ import annotations

from dataclasses import asdict

from django.http import JsonResponse
from django.urls import path
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from agents.doors.web.navigation import Shortcut
from agents.doors.web.pages import PersonRequest, page
from agents.doors.web.site_parts import SitePart
from agents.features.command_palette.entries import entries_for

SITE_PARTS = [
    SitePart(script="vel_command_palette/palette.js", style="vel_command_palette/palette.css")
]
SHORTCUTS = [Shortcut(keys=("Ctrl", "K"), help=_("find a page, a conversation or an agent"))]
LONGEST = 200


@page
@require_safe
def palette(request: PersonRequest) -> JsonResponse:
    """Return the entries for the words `?q=`."""
    words = request.GET.get("q", "").replace("\0", "")[:LONGEST].strip()
    return JsonResponse({"entries": [asdict(entry) for entry in entries_for(request.user, words)]})


urlpatterns = [path("palette/", palette, name="palette")]
