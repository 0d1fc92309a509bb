"""The searchable text of skills."""

from __future__ import annotations

from django.db import models

from skills_app.models.skill import Skill, SkillVersion


class SkillIndexEntry(models.Model):
    """The words of a skill's current version; `skills_app.queries.index` writes and reads it.

    The migration gives it a full-text index: in SQLite an FTS5 table that triggers on this table
    keep in step, in PostgreSQL a generated `tsvector` with a GIN index.
    """

    skill = models.OneToOneField(
        Skill, on_delete=models.CASCADE, primary_key=True, related_name="index_entry"
    )
    version = models.ForeignKey(SkillVersion, on_delete=models.CASCADE, related_name="+")
    analysis = models.CharField(max_length=16, help_text="Which analysis made the tokens.")
    tokens = models.TextField(help_text="Stems in a-z, 0-9 and _, with blanks between.")
    names = models.TextField(help_text="Name, description and tags, folded.")

    def __str__(self) -> str:
        return f"Words of {self.skill}"
