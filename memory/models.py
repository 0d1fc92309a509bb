"""Rows of agents' memory: files, their revisions, and edit requests of agents."""

from __future__ import annotations

from typing import ClassVar, Self, TypeVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from memory.paths import MAX_PATH_CHARACTERS, PERSONAL, shown_path

KIND = "memory"
"""The kind of the approval requests for memory edits."""


class Operation(models.TextChoices):
    """The operation that made a revision. Agents may request write, append and delete."""

    WRITE = "write", _("write")
    APPEND = "append", _("append")
    DELETE = "delete", _("delete")
    RESTORE = "restore", _("restore")
    IMPORT = "import", _("import")


Row = TypeVar("Row", bound=models.Model)


class SharedRows(models.Manager[Row]):
    """Select the memory that agents share with all their users, without files of single people."""

    def get_queryset(self) -> models.QuerySet[Row]:
        return super().get_queryset().filter(person=None)


def _is_consistent() -> models.Q:
    """Return the condition that a row has a person exactly if its path is in `me/`."""
    personal = models.Q(path__startswith=f"{PERSONAL}/")
    return models.Q(personal, person__isnull=False) | models.Q(~personal, person__isnull=True)


class MemoryFile(models.Model):
    """The current content of `knowledge/…` or `me/…`. A deleted file has only revisions.

    `objects` selects only files that belong to agents. `memory.queries.rows` selects those of one
    person.
    """

    agent = models.ForeignKey("agents.Agent", on_delete=models.CASCADE, related_name="memory_files")
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        help_text=_("The only person who reads and changes it: a file of `me/`."),
    )
    path = models.CharField(max_length=MAX_PATH_CHARACTERS)
    content = models.TextField()
    content_type = models.CharField(max_length=100, default="text/markdown")
    size_bytes = models.PositiveIntegerField()
    revision = models.PositiveIntegerField(help_text=_("The number of its latest revision."))
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects: ClassVar[SharedRows[Self]] = SharedRows()
    every = models.Manager()

    class Meta:
        base_manager_name = "every"
        ordering = ["agent", "path"]
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "path"],
                condition=models.Q(person__isnull=True),
                name="memory_file_path",
            ),
            models.UniqueConstraint(
                fields=["agent", "person", "path"], name="memory_file_of_person"
            ),
            models.CheckConstraint(condition=_is_consistent(), name="memory_file_is_somebodys"),
        ]

    def __str__(self) -> str:
        return shown_path(self.path)


class MemoryRevision(models.Model):
    """One change of one file, kept until it is purged. Numbers continue after a deletion.

    The unique number makes a change conditional: of two changes that build on the same revision,
    one is refused.
    """

    agent = models.ForeignKey(
        "agents.Agent", on_delete=models.CASCADE, related_name="memory_revisions"
    )
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    path = models.CharField(max_length=MAX_PATH_CHARACTERS)
    number = models.PositiveIntegerField()
    operation = models.CharField(max_length=10, choices=Operation.choices)
    content = models.TextField(null=True, help_text=_("Null: the file was deleted, or purged."))
    sha256 = models.CharField(max_length=64, blank=True)
    size_bytes = models.PositiveIntegerField(default=0)
    reason = models.TextField(blank=True)
    source = models.CharField(
        max_length=20, help_text=_("Where the change came from, such as approval or web.")
    )
    edit_request = models.ForeignKey(
        "memory.MemoryEditRequest",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="revisions",
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    purged_at = models.DateTimeField(
        null=True, blank=True, help_text=_("When its content and its reason were erased.")
    )

    objects: ClassVar[SharedRows[Self]] = SharedRows()
    every = models.Manager()

    class Meta:
        base_manager_name = "every"
        ordering = ["agent", "path", "-number"]
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "path", "number"],
                condition=models.Q(person__isnull=True),
                name="memory_revision_number",
            ),
            models.UniqueConstraint(
                fields=["agent", "person", "path", "number"], name="memory_revision_of_person"
            ),
            models.CheckConstraint(condition=_is_consistent(), name="memory_revision_is_somebodys"),
        ]

    def __str__(self) -> str:
        return f"{shown_path(self.path)} r{self.number}"


class MemoryEditRequest(models.Model):
    """One change that an agent proposed, or saved without asking.

    Its status is that of its approval request. An edit that was saved without asking has no
    approval request.

    `proposed_content` is the whole file after the change, for `append` too; null for `delete`.
    `base_revision` is the number of the revision that the proposal builds on; 0 if there never was
    a file. A purge erases `previous_content`, `proposed_content`, `asked`,
    `reason`, `provenance` and `warnings`.
    """

    erased_with = ("run",)

    agent = models.ForeignKey(
        "agents.Agent", on_delete=models.CASCADE, related_name="memory_edit_requests"
    )
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        help_text=_("The only person who sees and decides it: a change of a file of `me/`."),
    )
    run = models.ForeignKey(
        "agents.Run", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    approval = models.OneToOneField(
        "agents.ApprovalRequest",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="memory_edit",
    )
    path = models.CharField(max_length=MAX_PATH_CHARACTERS)
    operation = models.CharField(max_length=10, choices=Operation.choices)
    previous_content = models.TextField(null=True, blank=True)
    base_revision = models.PositiveIntegerField(default=0)
    proposed_content = models.TextField(null=True, blank=True)
    asked = models.JSONField(
        default=dict, help_text=_("content, old_text and replace_all, as the agent gave them.")
    )
    reason = models.TextField(blank=True)
    provenance = models.JSONField(
        default=dict, help_text=_("step, and sources: texts by others that the run had read.")
    )
    warnings = models.JSONField(
        default=list, help_text=_("Sentences, such as about the memory's size.")
    )
    created_at = models.DateTimeField(auto_now_add=True)
    purged_at = models.DateTimeField(
        null=True, blank=True, help_text=_("When its contents and its reason were erased.")
    )

    objects: ClassVar[SharedRows[Self]] = SharedRows()
    every = models.Manager()

    class Meta:
        base_manager_name = "every"
        ordering = ["-created_at"]
        constraints = [
            models.CheckConstraint(condition=_is_consistent(), name="memory_edit_is_somebodys"),
        ]

    def __str__(self) -> str:
        return f"{self.operation} {shown_path(self.path)}"
