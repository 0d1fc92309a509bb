"""The MCP endpoint, with and without a slash: `path("mcp", include("agents.mcp_server.urls"))`."""

from __future__ import annotations

from django.urls import re_path

from agents.mcp_server.door import endpoint

app_name = "mcp"
urlpatterns = [re_path(r"^(?:/)?$", endpoint, name="endpoint")]
