"""What the library of skills refuses. `agents` turns these into its own service errors."""

from __future__ import annotations


class SkillRefused(Exception):
    """Base. The message is fit to be shown; `code` is a stable word for programs."""

    code = "refused"


class InvalidSkill(SkillRefused):
    """The text is no skill. The message says what to change."""

    code = "invalid"


class SkillChanged(SkillRefused):
    """The skill is not at the version that the change builds on."""

    code = "stale"
