"""Where signed requests from outside come in: `path("hooks/", include("agents.api.hook_urls"))`."""

from __future__ import annotations

from django.urls import path

from agents.api.hook_door import receive

app_name = "hooks"
urlpatterns = [path("<slug:hook_id>", receive, name="receive")]
