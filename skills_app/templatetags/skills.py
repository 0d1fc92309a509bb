"""The tag `{% trust_badge skill trusts %}` shows the trust level of a skill."""

from __future__ import annotations

from collections.abc import Mapping

from django import template
from django.utils.translation import gettext

from skills_app.models import Skill, Trust

register = template.Library()


@register.inclusion_tag("skills_app/trust_badge.html")
def trust_badge(skill: Skill, waiting: Mapping[int, str]) -> dict[str, str]:
    """Return the trust of the current version, or else that of the latest one in `waiting`."""
    trust = skill.current.trust if skill.current else waiting.get(skill.pk, "")
    return {"trust": trust, "label": str(Trust(trust).label) if trust else gettext("no version")}
