"""WebSocket routes of the app, for a project's ASGI router."""

from __future__ import annotations

from channels.routing import URLRouter
from channels.sessions import CookieMiddleware
from django.urls import path, re_path

from agents.consumers.queue import QueueConsumer
from agents.consumers.run import RunConsumer
from agents.consumers.unknown import refuse_unknown_path
from agents.doors.websockets.origin import OwnPagesOnly

websocket_urlpatterns = [
    path("ws/approvals/", QueueConsumer.as_asgi()),
    path("ws/runs/<slug:run_id>/", RunConsumer.as_asgi()),
    re_path("", refuse_unknown_path),  # type: ignore[arg-type]  # ASGI, not a view
]

# Consumers check session and user at the handshake, and again for each frame.
websocket_application = OwnPagesOnly(CookieMiddleware(URLRouter(websocket_urlpatterns)))
"""The complete stack, for `ProtocolTypeRouter` under "websocket"."""
