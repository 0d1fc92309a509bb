"""The admin pages of the library of skills and of the skills of one agent."""

from agents.doors.admin.agent_pages import AgentPage
from skills_app.admin import skills
from skills_app.admin.agent_skills import skills_of_agent, skills_page
from skills_app.admin.filters import QUARANTINE_BOX

__all__ = ["skills"]

AGENT_PAGES = [AgentPage("skills", skills_page, skills_of_agent, fieldset="Skills")]
DASHBOARD_BOXES = [QUARANTINE_BOX]
