"""The part of skills in each run."""

from skills_app.runs.session import RunSkills

RUN_PARTS = [RunSkills]
