"""A skill and its immutable versions."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from skills_app.library.package import Head

MAX_NAME_CHARACTERS = 64


class Trust(models.TextChoices):
    """The trust level of exactly these bytes. A quarantined version is never given to an agent."""

    BUILT_IN = "built-in", _("built-in")
    REVIEWED = "reviewed", _("reviewed")
    LOCAL = "local", _("local directory")
    IMPORTED = "imported", _("imported")
    QUARANTINED = "quarantined", _("quarantined")


class Skill(models.Model):
    """A named skill. Its content is in its versions.

    `scope` is a scope of `skills_app.library.scopes`. `current` is the version that agents get; a
    later one waits until somebody accepts it. `current` is null if the skill was deleted, or no
    accepted version is left outside of quarantine.
    """

    scope = models.CharField(max_length=1100)
    agent = models.ForeignKey(
        "agents.Agent",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="own_skills",
        help_text=_("The agent whose own skill it is; empty for shared ones."),
    )
    name = models.CharField(max_length=MAX_NAME_CHARACTERS)
    description = models.CharField(max_length=1024)
    version = models.PositiveIntegerField(
        help_text=_("The number of the latest version, also of one that deleted the skill.")
    )
    current = models.ForeignKey(
        "SkillVersion", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    is_deleted = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name", "scope"]
        constraints = [
            models.UniqueConstraint(fields=["scope", "name"], name="skill_name_per_scope"),
        ]
        permissions = [
            ("manage_library", _("Can import, change and delete skills of the library")),
            (
                "review_skill",
                _("Can accept versions of skills, put them into quarantine, and release them"),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class SkillVersion(models.Model):
    """A version of a skill: a package that never changes.

    `trust` applies to exactly these bytes. `head` is the JSON of `skills_app.library.package.Head`.
    `findings` are those of the scan at import.
    """

    skill = models.ForeignKey(Skill, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    content = models.TextField(null=True, help_text=_("Its SKILL.md. Null: the skill was deleted."))
    content_hash = models.CharField(
        max_length=64,
        blank=True,
        db_index=True,
        help_text=_("SHA-256 of all its files, as `skills_app.library.package.hash_files` has it."),
    )
    head = models.JSONField(default=dict)
    file_count = models.PositiveIntegerField(default=0)
    size_bytes = models.PositiveBigIntegerField(default=0)
    findings = models.JSONField(default=list, blank=True)
    trust = models.CharField(max_length=20, choices=Trust.choices)
    reviewed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    reviewed_at = models.DateTimeField(null=True, blank=True)
    accepted_at = models.DateTimeField(
        null=True, blank=True, help_text=_("When agents first got it. Null: it has only waited.")
    )
    reason = models.TextField(blank=True)
    source = models.CharField(max_length=20)
    origin = models.CharField(
        max_length=500, blank=True, help_text=_("The file or address that it was imported from.")
    )
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

    @property
    def fields(self) -> Head:
        return Head.from_json(self.head)


class AgentSkill(models.Model):
    """The choice to enable or disable a skill for an agent.

    Without a choice, library skills are disabled. All others are enabled, unless their SKILL.md has
    `enabled: false`.
    """

    agent = models.ForeignKey(
        "agents.Agent", on_delete=models.CASCADE, related_name="skill_choices"
    )
    skill = models.ForeignKey(Skill, on_delete=models.CASCADE, related_name="choices")
    enabled = models.BooleanField()
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["agent", "skill"], name="agent_skill_once"),
        ]

    def __str__(self) -> str:
        return f"{self.skill_id} {'on' if self.enabled else 'off'} for {self.agent_id}"


class SkillBlob(models.Model):
    sha256 = models.CharField(primary_key=True, max_length=64)
    data = models.BinaryField()
    size_bytes = models.PositiveBigIntegerField()

    def __str__(self) -> str:
        return self.sha256


class SkillFile(models.Model):
    """One file of a version. SKILL.md has a row too."""

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


class SkillSet(models.Model):
    """A set of skill versions, which never changes. `id` is the SHA-256 of its entries."""

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
    """The set of skill versions that a run pinned at its start."""

    run = models.OneToOneField(
        "agents.Run", on_delete=models.CASCADE, primary_key=True, related_name="pinned"
    )
    skill_set = models.ForeignKey(SkillSet, on_delete=models.CASCADE, related_name="runs")

    def __str__(self) -> str:
        return f"{self.skill_set_id} of {self.run_id}"


class SkillIndexEntry(models.Model):
    """The searched words of a skill's current version, for `skills_app.queries.index`.

    The migration adds a full-text index: in SQLite an FTS5 table that triggers keep up to date, in
    PostgreSQL a generated `tsvector` with a GIN index.
    """

    skill = models.OneToOneField(
        Skill, on_delete=models.CASCADE, primary_key=True, related_name="index_entry"
    )
    version = models.ForeignKey(SkillVersion, on_delete=models.CASCADE, related_name="+")
    analysis = models.CharField(max_length=16, help_text="Which analysis made the tokens.")
    tokens = models.TextField(help_text="Stems in a-z, 0-9 and _, with blanks between.")
    names = models.TextField(help_text="Name, description and tags, folded.")
    analysed = models.TextField(help_text="The skill as the ranking reads it, as JSON.")

    def __str__(self) -> str:
        return f"Words of {self.skill}"


class UseKind(models.TextChoices):
    LOADED = "loaded", _("loaded")
    MOUNTED = "mounted", _("SKILL.md read as a file")
    FILE = "file", _("file read or run")
    DEACTIVATED = "deactivated", _("deactivated")


class SkillUse(models.Model):
    """One use of a skill version by a tool call."""

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
    """A skill that a thread's agent has loaded and not deactivated.

    `version` is None from the restoration of a session's state until the next run.
    """

    thread = models.ForeignKey("agents.Thread", on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=64)
    version = models.ForeignKey(SkillVersion, on_delete=models.CASCADE, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["thread", "name"], name="active_skill_once"),
        ]

    def __str__(self) -> str:
        return self.name
