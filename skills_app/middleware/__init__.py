"""The tools for skills and their segment of the prompt."""

from skills_app.middleware.tools import SkillsMiddleware

MIDDLEWARE = (SkillsMiddleware(),)
