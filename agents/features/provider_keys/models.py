"""Stored keys of model providers."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.ids import ID_LENGTH, new_id
from agents.secret_text import SecretTextField


class ProviderKey(models.Model):
    """The key of a company's API. It is sent only to `origin`."""

    audit_kind = "provider_key"

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=new_id, editable=False)
    provider = models.CharField(
        max_length=20, unique=True, help_text=_("The company, for example openai.")
    )
    origin = models.CharField(
        max_length=300, help_text=_("Scheme, host and port of the server that gets the key.")
    )
    secret = SecretTextField(editable=False)
    set_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        editable=False,
        related_name="+",
    )
    set_at = models.DateTimeField(editable=False)

    class Meta:
        ordering = ["provider"]
        default_permissions = ()
        permissions = [
            ("manage_provider_keys", _("Can set, test and remove the keys of model providers")),
        ]

    def __str__(self) -> str:
        return f"{self.provider} at {self.origin}"
