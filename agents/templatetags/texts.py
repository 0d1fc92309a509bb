"""The address of the script with the translations of the page's scripts."""

from __future__ import annotations

from django import template
from django.conf import settings
from django.urls import reverse
from django.utils.translation import get_language

from agents.web.language import text_script

register = template.Library()


@register.simple_tag
def texts_url() -> str:
    """Return the address with the hash of the content: browsers keep it until it changes."""
    _, version = text_script(get_language() or settings.LANGUAGE_CODE)
    return f"{reverse('web:texts')}?v={version}"
