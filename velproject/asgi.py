"""ASGI entry point for web servers."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "velproject.settings")
django.setup()

from velproject.routing import application  # noqa: E402  # imports models

__all__ = ["application"]
