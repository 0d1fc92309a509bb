"""Tokens for the API. Only their hashes are stored."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class TokenScope(models.TextChoices):
    READ = "read", _("read everything that the user may read")
    RUN = "run", _("start, cancel, resume and fork runs; upload and restore files")
    APPROVE = "approve", _("decide approval requests, revoke grants")
    MANAGE = (
        "manage",
        _(
            "change agents and their resources, such as memory, skills, databases, credentials, "
            "budgets and (together with run) schedules"
        ),
    )
    ADMIN = (
        "admin",
        _(
            "change access: users, groups, tokens, machines, toolboxes, and webhooks that start "
            "runs"
        ),
    )
    MCP = "mcp", _("use agents as MCP tools only")


class ApiToken(models.Model):
    """A bearer token of a user, limited to scopes."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens"
    )
    name = models.CharField(max_length=100, blank=True)
    prefix = models.CharField(
        max_length=12, help_text=_("The first characters, which identify the token.")
    )
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("API token")
        ordering = ["user", "-created_at"]

    def __str__(self) -> str:
        return f"{self.prefix}… of {self.user}"
