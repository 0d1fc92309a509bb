"""`{% page_languages as languages %}`: the languages that a person can choose."""

from __future__ import annotations

from django import template
from django.conf import settings
from django.template import RequestContext

from agents.web.language import chosen_language

register = template.Library()


@register.simple_tag(takes_context=True)
def page_languages(context: RequestContext) -> dict[str, object]:
    """Return the languages of the settings as `offered`, and the choice of the person as `chosen`.

    None are offered if no middleware sets the language, or if the project lists no languages.
    """
    request = context.get("request")
    is_listed = settings.is_overridden("LANGUAGES")  # type: ignore[misc]  # unknown to the stubs
    has_choice = hasattr(request, "LANGUAGE_CODE") and is_listed
    return {
        "offered": settings.LANGUAGES if has_choice else [],
        "chosen": chosen_language(request) if request is not None else "",
    }
