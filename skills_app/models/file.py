"""The files of versions. Equal bytes are stored once."""

from __future__ import annotations

from django.db import models

from skills_app.models.skill import SkillVersion


class SkillBlob(models.Model):
    sha256 = models.CharField(primary_key=True, max_length=64)
    data = models.BinaryField()
    size_bytes = models.PositiveBigIntegerField()

    def __str__(self) -> str:
        return self.sha256


class SkillFile(models.Model):
    """One file of a version; SKILL.md is among them."""

    version = models.ForeignKey(SkillVersion, on_delete=models.CASCADE, related_name="files")
    path = models.CharField(max_length=500)
    blob = models.ForeignKey(SkillBlob, on_delete=models.PROTECT, related_name="+")
    executable = models.BooleanField(default=False)

    class Meta:
        ordering = ["version", "path"]
        constraints = [
            models.UniqueConstraint(fields=["version", "path"], name="skill_file_path"),
        ]

    def __str__(self) -> str:
        return self.path
