"""The ASGI application for each protocol."""

from channels.routing import ProtocolTypeRouter
from django.core.handlers.asgi import ASGIHandler

from agents.routing import websocket_application
from velproject.monitoring.health import HealthFirst
from velproject.web.heartbeat import start_web_heartbeat

# Django must be set up before this import, which `velproject.asgi` does.
application = ProtocolTypeRouter(
    {"http": HealthFirst(ASGIHandler()), "websocket": websocket_application}
)

start_web_heartbeat()
