"""Databases that agents may read, and may write if allowed."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.features.databases.limits import (
    LEAST_SECONDS,
    MOST_ROWS,
    MOST_SECONDS,
    NAME_PATTERN,
)
from agents.ids import ID_LENGTH, new_id
from agents.secret_text import SecretTextField


class DatabaseConnection(models.Model):
    """The address and the limits of a database. Agents refer to it by its name.

    `agent` and `owner` are set together for a connection of the command line: it belongs to that
    one agent and serves only runs of that one person.
    """

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=new_id, editable=False)
    name = models.CharField(
        max_length=63,
        validators=[
            RegexValidator(
                rf"\A{NAME_PATTERN}\Z", _("Use letters, digits, _ and -. Start with a letter.")
            )
        ],
        help_text=_("The name for agents, for example shop."),
    )
    description = models.TextField(
        blank=True, max_length=2000, help_text=_("A description of its content, for people.")
    )
    url = SecretTextField(editable=False, verbose_name=_("URL"))
    dialect = models.CharField(
        max_length=20, blank=True, editable=False, help_text=_("The kind of the database.")
    )
    statement_seconds = models.FloatField(
        default=30.0,
        validators=[MinValueValidator(LEAST_SECONDS), MaxValueValidator(MOST_SECONDS)],
        help_text=_("The maximum seconds of one statement."),
    )
    max_rows = models.PositiveIntegerField(
        default=10_000,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_ROWS)],
        help_text=_("The maximum rows of one result. Longer results are cut."),
    )
    max_bytes = models.PositiveIntegerField(
        default=1_000_000,
        validators=[MinValueValidator(1_000), MaxValueValidator(100_000_000)],
        help_text=_("The maximum size of one result, in bytes. Longer results are cut."),
    )
    hidden_columns = models.JSONField(
        default=list,
        blank=True,
        help_text=_('Columns that agents cannot read, for example ["password", "users.email"].'),
    )
    allow_privileged = models.BooleanField(
        default=False,
        help_text=_(
            "Also accept a role that is a superuser or can read files of the server. A role that "
            "can only read is safer."
        ),
    )
    allow_writes = models.BooleanField(
        default=False,
        help_text=_(
            "Agents can request changes of rows. Each statement is tried in a transaction that is "
            "rolled back, and requires approval with the changed rows."
        ),
    )
    allow_routines = models.BooleanField(
        default=False,
        help_text=_(
            "Also accept statements that run functions or triggers of the database. They run in "
            "the trial, before an approval, and a rollback may not undo their effects."
        ),
    )
    agents = models.ManyToManyField("agents.Agent", related_name="databases", editable=False)
    agent = models.ForeignKey(
        "agents.Agent",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        editable=False,
        related_name="own_databases",
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        editable=False,
        related_name="+",
    )
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
        ordering = ["name", "id"]
        verbose_name = _("database connection")
        permissions = [
            ("configure_database", _("Can define databases and give them to agents")),
            (
                "allow_database_writes",
                _("Can let agents write to a database, each change with approval"),
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["name"], condition=models.Q(agent=None), name="database_name_shared"
            ),
            models.UniqueConstraint(fields=["agent", "name"], name="database_name_of_agent"),
            models.CheckConstraint(
                condition=models.Q(agent=None, owner=None)
                | models.Q(agent__isnull=False, owner__isnull=False),
                name="database_agent_with_owner",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_private(self) -> bool:
        """Return whether it belongs to one person's command line."""
        return self.agent_id is not None
