"""The skills of a run at its start. Most runs of an agent share one set."""

from __future__ import annotations

from django.db import models

from skills_app.models.skill import SkillVersion


class SkillSet(models.Model):
    """Skills by version, never changed. `id` is the SHA-256 of its entries."""

    id = models.CharField(primary_key=True, max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.id[:12]


class SkillSetEntry(models.Model):
    skill_set = models.ForeignKey(SkillSet, on_delete=models.CASCADE, related_name="entries")
    position = models.PositiveIntegerField()
    name = models.CharField(max_length=64)
    version = models.ForeignKey(SkillVersion, on_delete=models.CASCADE, related_name="+")

    class Meta:
        ordering = ["skill_set", "position"]
        constraints = [
            models.UniqueConstraint(fields=["skill_set", "name"], name="skill_set_name"),
        ]

    def __str__(self) -> str:
        return self.name


class RunSkillSet(models.Model):
    """The skills of a run at its start, by version."""

    run = models.OneToOneField(
        "agents.Run", on_delete=models.CASCADE, primary_key=True, related_name="pinned"
    )
    skill_set = models.ForeignKey(SkillSet, on_delete=models.CASCADE, related_name="runs")

    def __str__(self) -> str:
        return f"{self.skill_set_id} of {self.run_id}"
