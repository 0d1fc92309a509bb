"""What the app has for each run."""

from skills_app.runs.session import RunSkills

RUN_PARTS = [RunSkills]
