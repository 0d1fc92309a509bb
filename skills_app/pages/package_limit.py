"""A size limit for forms with a package that applies before the form is read."""

from __future__ import annotations

from agents.doors.web.upload_limit import View, limited_form
from skills_app.settings import SkillSettings


def limited_package(view: View) -> View:
    """Answer 413 for a body that is larger than a skill package, or of unknown length."""
    return limited_form(view, lambda: SkillSettings.now().ARCHIVE_BYTES)
