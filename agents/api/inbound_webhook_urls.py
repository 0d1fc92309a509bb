"""Where signed requests from outside come in: `include("agents.api.inbound_webhook_urls")`."""

from __future__ import annotations

from django.urls import path

from agents.api.inbound_webhook_door import receive

app_name = "hooks"
urlpatterns = [path("<slug:hook_id>", receive, name="receive")]
