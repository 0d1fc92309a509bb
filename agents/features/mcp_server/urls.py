"""The MCP endpoint, with and without a slash.

A project that embeds Vel includes it: `path("mcp", include("agents.features.mcp_server.urls"))`.
"""

from __future__ import annotations

from django.urls import include, path, re_path

from agents.features.mcp_server.door import endpoint

app_name = "mcp"
urlpatterns = [re_path(r"^(?:/)?$", endpoint, name="endpoint")]

SITE = [path("mcp", include((urlpatterns, app_name)))]
"""For Vel's own project."""
