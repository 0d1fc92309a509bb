"""HTTP, and Vel's sockets below a separate path."""

import os

from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "bookshop.settings")
http = get_asgi_application()

from django.urls import path, re_path  # noqa: E402
from library.views import no_socket  # noqa: E402

from agents.routing import websocket_application  # noqa: E402  # imports models

sockets = URLRouter([path("live/", websocket_application), re_path("", no_socket)])
application = ProtocolTypeRouter({"http": http, "websocket": sockets})
