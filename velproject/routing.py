"""Which application answers which protocol."""

from channels.routing import ProtocolTypeRouter
from django.core.handlers.asgi import ASGIHandler

from agents.routing import websocket_application

# Whoever routes has set Django up: `velproject.asgi` does.
application = ProtocolTypeRouter({"http": ASGIHandler(), "websocket": websocket_application})
