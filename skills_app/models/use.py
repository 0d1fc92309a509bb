"""The use of skills by runs. The run's `SkillSet` shows which skills it was offered."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from skills_app.models.skill import SkillVersion


class UseKind(models.TextChoices):
    LOADED = "loaded", _("loaded")
    MOUNTED = "mounted", _("SKILL.md read as a file")
    FILE = "file", _("file read or run")
    DEACTIVATED = "deactivated", _("deactivated")


class SkillUse(models.Model):
    """One use of a version of a skill by a call."""

    run = models.ForeignKey("agents.Run", on_delete=models.CASCADE, related_name="skill_uses")
    version = models.ForeignKey(SkillVersion, on_delete=models.CASCADE, related_name="uses")
    kind = models.CharField(max_length=20, choices=UseKind.choices)
    path = models.CharField(max_length=500, blank=True)
    call_id = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["version", "kind"], name="skill_use_version")]

    def __str__(self) -> str:
        return f"{self.kind} {self.version_id}"


class ActiveSkill(models.Model):
    """A skill that a thread's agent has loaded and not deactivated."""

    thread = models.ForeignKey("agents.Thread", on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=64)
    version = models.ForeignKey(SkillVersion, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["thread", "name"], name="active_skill_once"),
        ]

    def __str__(self) -> str:
        return self.name
