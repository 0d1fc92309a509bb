"""The pages of the library, of one skill, and of the skills of an agent."""

from __future__ import annotations

from django.urls import path
from django.utils.translation import gettext_lazy as _

from agents.doors.web.navigation import AGENT, NavigationEntry
from agents.doors.web.tool_forms import ToolForm
from skills_app.pages import agent_skills, library, skill

urlpatterns = [
    path("agents/<slug:slug>/skills/", agent_skills.skills, name="skills"),
    path("skills/", library.library, name="skill-library"),
    path("skills/<int:skill_id>/", skill.skill, name="skill"),
    path("skills/<int:skill_id>/export/", skill.skill_export, name="skill-export"),
    path("skills/<int:skill_id>/files/<path:path>", skill.skill_file, name="skill-file"),
]
NAVIGATION = [
    NavigationEntry("web:skill-library", _("Skills"), order=400, key="s", help=_("skills")),
    NavigationEntry("web:skills", _("Skills"), place=AGENT, order=200),
]
TOOL_FORMS = [ToolForm("load_skill", words=(_("loaded a skill"), _("loaded # skills")))]
