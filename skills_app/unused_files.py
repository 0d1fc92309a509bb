"""Report and remove unpacked skills that no run needs."""

from agents.kernel.retention import UnusedFiles
from skills_app.actions.sets import prune_unpacked_skills

UNUSED_FILES = [
    UnusedFiles(
        "unpacked sets of skills", lambda days, apply: prune_unpacked_skills(days, apply=apply)
    )
]
