"""The manifest with which browsers install the site as an app. It has nothing about its users."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.templatetags.static import static
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from agents.doors.web.pages import public_page

ICON_SIZES = (192, 512)


@public_page
@require_safe
def app_manifest(request: HttpRequest) -> JsonResponse:
    """Return the manifest. Browsers request it without cookies."""
    home = reverse("web:home")
    icons = [
        {
            "src": static(f"agents/web/icon-{size}.png"),
            "sizes": f"{size}x{size}",
            "type": "image/png",
            "purpose": purpose,
        }
        for size in ICON_SIZES
        for purpose in ("any", "maskable")
    ]
    manifest = {
        "id": home,
        "name": "Vel",
        "short_name": "Vel",
        "start_url": home,
        "scope": home,
        "display": "standalone",
        "background_color": "#fafafb",
        "theme_color": "#1f6f68",
        "icons": icons,
        "shortcuts": [{"name": gettext("Runs"), "url": reverse("web:history")}],
    }
    return JsonResponse(manifest, content_type="application/manifest+json")
