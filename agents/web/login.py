"""Signing in and out."""

from __future__ import annotations

from django.contrib.auth.views import LoginView, LogoutView

from agents.web.pages import public_page

login = public_page(
    LoginView.as_view(template_name="web/login.html", redirect_authenticated_user=True)
)
logout = public_page(LogoutView.as_view())
"""By POST only, so that no foreign page can sign a person out by an image."""
