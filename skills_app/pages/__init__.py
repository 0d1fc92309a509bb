"""The pages of the library, of one skill, and of the skills of an agent."""

from __future__ import annotations

from django.urls import path

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
    NavigationEntry("web:skill-library", "Skills", order=400, key="s", help="skills"),
    NavigationEntry("web:skills", "Skills", place=AGENT, order=200),
]
TOOL_FORMS = [ToolForm("load_skill", words=("loaded a skill", "loaded # skills"))]
