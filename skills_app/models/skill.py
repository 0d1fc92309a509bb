"""A skill and its immutable versions."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

MAX_NAME_CHARACTERS = 64


class Trust(models.TextChoices):
    """Who vouches for exactly these bytes."""

    BUILT_IN = "built-in", _("built-in")
    REVIEWED = "reviewed", _("reviewed")
    LOCAL = "local", _("local directory")
    IMPORTED = "imported", _("imported")
    QUARANTINED = "quarantined", _("quarantined")


class Skill(models.Model):
    """A named skill of one agent. What it says is in its versions."""

    agent = models.ForeignKey("agents.Agent", on_delete=models.CASCADE, related_name="own_skills")
    name = models.CharField(max_length=MAX_NAME_CHARACTERS)
    description = models.CharField(max_length=1024)
    version = models.PositiveIntegerField(
        help_text=_("The number of the latest version, also of one that deleted the skill.")
    )
    is_deleted = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["agent", "name"]
        constraints = [
            models.UniqueConstraint(fields=["agent", "name"], name="skill_name_per_agent"),
        ]

    def __str__(self) -> str:
        return self.name


class SkillVersion(models.Model):
    """The text of a SKILL.md, never changed. `trust` is of these bytes and no others."""

    skill = models.ForeignKey(Skill, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    content = models.TextField(null=True, help_text=_("Null: the skill was deleted."))
    content_hash = models.CharField(max_length=64, blank=True, help_text=_("SHA-256."))
    trust = models.CharField(max_length=20, choices=Trust.choices)
    reason = models.TextField(blank=True)
    source = models.CharField(max_length=20)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["skill", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["skill", "number"], name="skill_version_number"),
        ]

    def __str__(self) -> str:
        return f"{self.skill} v{self.number}"
