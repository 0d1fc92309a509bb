"""The shop's own pages at the root, and Vel below a prefix."""

from django.contrib import admin
from django.contrib.auth.views import LoginView
from django.urls import include, path
from library.views import books

urlpatterns = [
    path("books/", books),
    path("members/sign-in/", LoginView.as_view(template_name="library/sign_in.html")),
    path("office/", admin.site.urls),
    path("vel/api/", include("agents.api.urls")),
    path("vel/mcp", include("agents.features.mcp_server.urls")),
    path("vel/", include("agents.web.urls")),
]
