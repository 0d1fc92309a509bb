"""The parts of the app in each run."""

from skills_app.runs.session import RunSkills

RUN_PARTS = [RunSkills]
