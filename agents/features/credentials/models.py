"""Tokens of other services that agents act with."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.ids import ID_LENGTH, new_id
from agents.secret_text import SecretTextField


class Credential(models.Model):
    """A token of a service: of one person, for that person's runs, or shared (no owner)."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=new_id, editable=False)
    provider = models.CharField(max_length=20, help_text=_("The service, for example slack."))
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="credentials",
        help_text=_("The user whose runs use it. Empty: all users without their own."),
    )
    secret = SecretTextField(editable=False)
    account = models.CharField(
        max_length=200,
        blank=True,
        editable=False,
        help_text=_("The account, as reported by the service when it was stored."),
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        editable=False,
        related_name="+",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["provider", "owner"]
        permissions = [
            ("share_credential", _("Can store credentials for the runs of all users")),
        ]
        constraints = [
            models.UniqueConstraint(fields=["provider", "owner"], name="credential_of_owner"),
            models.UniqueConstraint(
                fields=["provider"], condition=models.Q(owner=None), name="credential_shared"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.provider} of {self.owner or 'everybody'}"
