"""MCP servers whose tools agents may use, and the stored state of their programs."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.ids import ID_LENGTH, new_id
from agents.models import Thread
from agents.models.json_text import JSONTextField
from agents.secret_text import SecretTextField

SLUG_PATTERN = r"[a-z0-9](?:[a-z0-9-]{0,22}[a-z0-9])?"
"""Without an underscore, so that a tool's name has only one reading."""


class NetworkChoice(models.TextChoices):
    NONE = "none", _("none")
    ALLOWLIST = "allowlist", _("allow-list")
    FULL = "full", _("any public address")


class McpTransport(models.TextChoices):
    STDIO = "stdio", _("a program in the sandbox")
    HTTP = "http", _("streamable HTTP")


class McpServer(models.Model):
    """The address of a server, and its tools that a person has accepted, word for word.

    `tools` are the accepted definitions: models receive these and no others. `found` are newer
    definitions by the server, which a person can accept. Each is a list of
    `{name, title, description, input_schema, annotations, digest}`; accepted ones have an `effect`.
    """

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=new_id, editable=False)
    slug = models.CharField(
        max_length=24,
        unique=True,
        validators=[
            RegexValidator(
                rf"\A{SLUG_PATTERN}\Z", _("Use small letters, digits and -, 24 at most.")
            )
        ],
        help_text=_("The names of its tools start with mcp__SLUG__."),
    )
    description = models.TextField(
        blank=True, max_length=2000, help_text=_("Its purpose, for people.")
    )
    enabled = models.BooleanField(
        default=True, help_text=_("Off: calls are refused immediately, also in current runs.")
    )
    transport = models.CharField(
        max_length=10, choices=McpTransport.choices, default=McpTransport.STDIO
    )
    command = models.CharField(
        max_length=500, blank=True, help_text=_("The program, for example mcp-server-time.")
    )
    arguments = models.JSONField(
        default=list,
        blank=True,
        help_text=_('Arguments of the program, for example ["--local-timezone", "UTC"].'),
    )
    toolbox = models.CharField(
        max_length=100,
        blank=True,
        help_text=_("The toolbox with the program. Empty: the system's Python."),
    )
    network = models.CharField(
        max_length=20, choices=NetworkChoice.choices, default=NetworkChoice.NONE
    )
    allowed_hosts = models.JSONField(
        default=list,
        blank=True,
        help_text=_('Hosts of the allow-list, for example ["api.example.com"].'),
    )
    sees_files = models.BooleanField(
        default=False,
        help_text=_("It can read the files of the conversation. It cannot change them."),
    )
    url = models.CharField(max_length=500, blank=True, help_text=_("For example https://host/mcp."))
    secret_names = models.JSONField(default=list, blank=True, editable=False)
    secrets = SecretTextField(editable=False, blank=True)
    call_seconds = models.PositiveSmallIntegerField(
        default=60,
        validators=[MinValueValidator(1), MaxValueValidator(600)],
        help_text=_("How long one call may take."),
    )
    tools = JSONTextField(default=list, editable=False)
    pinned_at = models.DateTimeField(null=True, blank=True, editable=False)
    pinned_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        editable=False,
        related_name="+",
    )
    found = JSONTextField(null=True, editable=False)
    found_digest = models.CharField(max_length=64, blank=True, editable=False)
    found_refused = JSONTextField(default=list, editable=False)
    checked_at = models.DateTimeField(null=True, blank=True, editable=False)
    problem = models.TextField(blank=True, editable=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        editable=False,
        related_name="+",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["slug"]
        verbose_name = _("MCP server")
        permissions = [
            ("configure_mcpserver", _("Can define MCP servers and give them to agents")),
            ("accept_mcp_tools", _("Can accept the tools of MCP servers")),
        ]

    def __str__(self) -> str:
        return self.slug


class McpState(models.Model):
    """The last stored state of the directories of all MCP programs of one thread."""

    thread = models.OneToOneField(
        Thread, on_delete=models.CASCADE, primary_key=True, related_name="mcp_state"
    )
    manifest = models.CharField(
        max_length=64, blank=True, help_text=_("Empty: it is larger than the limit of the storage.")
    )
    stored_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["thread"]
        verbose_name = _("state of MCP programs")
        verbose_name_plural = _("states of MCP programs")

    def __str__(self) -> str:
        return f"{self.manifest[:12] or 'not stored'} of {self.thread_id}"
