"""URLs of signed requests from outside.

A project that embeds Vel includes it: `include("agents.features.inbound_webhooks.urls")`.
"""

from __future__ import annotations

from django.urls import include, path

from agents.features.inbound_webhooks.door import receive

app_name = "hooks"
urlpatterns = [path("<slug:hook_id>", receive, name="receive")]

SITE = [path("hooks/", include((urlpatterns, app_name)))]
"""For a project with Vel's own pages."""
