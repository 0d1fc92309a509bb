"""The audit log: all changes and decisions, with their actors. Entries are append-only."""

from __future__ import annotations

from typing import Any, NoReturn

from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.ids import ID_LENGTH, new_id
from agents.models.json_text import JSONTextField


class Door(models.TextChoices):
    """The door through which a request came in."""

    ADMIN = "admin", _("admin")
    WEB = "web", _("web pages")
    API = "api", _("REST API")
    SOCKET = "socket", _("socket")
    MCP = "mcp", _("MCP server")
    CLI = "cli", _("command line")
    CODE = "code", _("Python code, or a worker")


class AuditIsSealed(TypeError):
    """Code tried to change or delete an entry of the audit log."""

    def __init__(self) -> None:
        super().__init__("Entries of the audit log are never changed or deleted.")


class SealedQuerySet(models.QuerySet["AuditEntry"]):
    """A queryset that can only read rows and add single ones."""

    def update(self, **fields: Any) -> NoReturn:
        raise AuditIsSealed

    def bulk_create(self, *args: Any, **options: Any) -> NoReturn:
        raise AuditIsSealed  # with `update_conflicts`, it changes rows

    def bulk_update(self, *args: Any, **options: Any) -> NoReturn:
        raise AuditIsSealed

    def update_or_create(self, *args: Any, **options: Any) -> NoReturn:
        raise AuditIsSealed

    def delete(self) -> NoReturn:
        raise AuditIsSealed

    def _raw_delete(self, using: str | None) -> NoReturn:
        raise AuditIsSealed


class AuditEntry(models.Model):
    """One change or decision. It has no foreign keys, because the rows it names can be deleted.

    `changes` is `{field: [before, after]}`, without secrets. Ids start with the time.
    """

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=new_id, editable=False)
    created_at = models.DateTimeField(_("when"), auto_now_add=True)
    actor = models.CharField(
        _("who"),
        max_length=200,
        blank=True,
        help_text=_("The name of the user. Empty: no person, for example when a request expires."),
    )
    actor_id = models.CharField(
        max_length=64, blank=True, help_text=_("The id of the user. Empty: not a user of Vel.")
    )
    door = models.CharField(max_length=10, choices=Door.choices)
    address = models.CharField(
        max_length=100, blank=True, help_text=_("The address of the client.")
    )
    credential = models.CharField(
        max_length=100, blank=True, help_text=_("An API token, or an account of this machine.")
    )
    action = models.CharField(
        max_length=60, help_text=_("The name of the action, for example agent.changed.")
    )
    kind = models.CharField(max_length=40, help_text=_("The kind of the object."))
    target_id = models.CharField(max_length=64, blank=True)
    target = models.CharField(_("on what"), max_length=300, blank=True)
    changes = JSONTextField(default=dict)
    note = models.TextField(blank=True)

    objects = SealedQuerySet.as_manager()

    class Meta:
        verbose_name = _("audit entry")
        verbose_name_plural = _("audit log")
        ordering = ["-id"]
        default_permissions = ("view",)
        base_manager_name = "objects"
        indexes = [
            models.Index(fields=["kind", "target_id", "id"], name="audit_target"),
            models.Index(fields=["actor_id", "id"], name="audit_actor"),
            models.Index(fields=["action", "id"], name="audit_action"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.target}".strip()

    def save(self, **options: Any) -> None:
        if not self._state.adding:
            raise AuditIsSealed
        super().save(**{**options, "force_insert": True})

    def delete(self, *args: Any, **options: Any) -> NoReturn:
        raise AuditIsSealed
