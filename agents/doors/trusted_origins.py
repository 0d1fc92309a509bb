"""The other origins whose pages may use this site: Django's CSRF_TRUSTED_ORIGINS."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings
from django.utils.http import is_same_domain


def is_trusted_origin(origin: str) -> bool:
    """Return whether the setting includes `origin`, as Django's check of forms reads it.

    `https://*.example.org` includes example.org and all its subdomains.
    """
    exact = [each for each in settings.CSRF_TRUSTED_ORIGINS if "*" not in each]
    if origin in exact:
        return True
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    patterns = (urlsplit(each) for each in settings.CSRF_TRUSTED_ORIGINS if "*" in each)
    return any(
        pattern.scheme == parts.scheme and is_same_domain(parts.netloc, pattern.netloc.lstrip("*"))
        for pattern in patterns
    )
