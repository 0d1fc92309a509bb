"""The first steps of an installation on the home page: `{% first_steps as steps %}`."""

from __future__ import annotations

from django import template
from django.template import Context

from agents.web import first_steps as selected

register = template.Library()


@register.simple_tag(takes_context=True)
def first_steps(context: Context) -> list[selected.Step]:
    return selected.first_steps(context["request"], context["request"].user)
