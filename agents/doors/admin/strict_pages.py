"""Admin pages without scripts, with the content security policy of Vel's other pages."""

from __future__ import annotations

from django import forms
from django.http import HttpResponse

from agents.doors.web.page_policy import CONTENT_SECURITY_POLICY

STYLES = forms.Media(
    css={"all": ["agents/admin/vel.css", "agents/web/review.css", "agents/admin/skills.css"]}
)
"""The styles, without the scripts of Django's lists and forms."""


def strict(response: HttpResponse) -> HttpResponse:
    """Set the policy of these pages on `response`, and return it."""
    response.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
    return response
