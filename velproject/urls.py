"""URLs of all pages and endpoints of the project."""

from django.contrib import admin
from django.templatetags.static import static
from django.urls import include, path
from django.utils.translation import gettext_lazy
from django.views.generic import RedirectView

from agents.kernel.features import collect
from agents.web.login import limited_password_change, limited_sign_in, login, logout
from velproject.monitoring.health import healthz, readyz
from velproject.monitoring.metrics import metrics
from velproject.monitoring.status_page import status_page

handler500 = "agents.web.server_error.server_error"

admin.site.site_header = admin.site.site_title = "Vel"
admin.site.index_title = gettext_lazy("Agents, runs and approvals")
admin.autodiscover()  # commands of `vel` omit the admin from the apps, which would do this

urlpatterns = [
    path("admin/login/", limited_sign_in(admin.site.login)),
    path(
        "admin/password_change/",
        limited_password_change(admin.site.admin_view(admin.site.password_change, cacheable=True)),
    ),
    path("admin/status/", admin.site.admin_view(status_page), name="vel-status"),
    path("healthz", healthz),
    path("readyz", readyz),
    path("metrics", metrics),
    path("admin/", admin.site.urls),
    path("api/v1/", include("agents.api.urls")),
    *(pattern for _, pattern in collect("urls", "SITE", skip_broken=True)),
    path("login/", login, name="login"),
    path("logout/", logout, name="logout"),
    # The admin's pages name no icon, so browsers request this path.
    path("favicon.ico", RedirectView.as_view(url=static("agents/web/icon.svg"))),
    path("", include("agents.web.urls")),
]
