"""The dashboard for the template of the admin's first page."""

from __future__ import annotations

from typing import Any

from django import template
from django.contrib import admin

from agents.admin.dashboard import dashboard

register = template.Library()


@register.simple_tag(takes_context=True)
def vel_dashboard(context: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of `agents.admin.dashboard`.

    There are none without a request, and for users who are not staff.
    """
    request = context.get("request")
    return {} if request is None else dashboard(admin.site, request)
