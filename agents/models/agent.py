"""Agents, and the versions of their definitions that runs pin."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.ids import ID_LENGTH, new_id
from agents.models.json_text import JSONTextField


class Agent(models.Model):
    """An agent: its identity, its owner, its users and its definition.

    The fields of the definition are the options of `agents.kernel.options`. Each is an attribute,
    with or without a column: `agent.system_prompt`, `Agent(slug="ada", max_turns=20)`. Queries can
    use columns only. `save_agent` in `agents.services.agent_definitions.actions` keeps each changed
    definition as an `AgentVersion`.
    """

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=new_id, editable=False)
    name = models.CharField(max_length=100)
    slug = models.SlugField(max_length=100, unique=True)
    description = models.TextField(blank=True)
    # Options that queries use. `agents.spec` describes them.
    provider = models.CharField(max_length=50, blank=True)
    model = models.CharField(max_length=200, blank=True)
    profile = models.CharField(max_length=20, default="full")
    sandbox = models.BooleanField(default=True)
    network = models.CharField(max_length=20, default="none")
    toolbox = models.CharField(max_length=100, blank=True)
    approver_groups = models.ManyToManyField(
        Group,
        blank=True,
        related_name="approves_for",
        help_text=_("Members of these groups decide the approval requests of this agent's runs."),
    )
    definition = JSONTextField(
        default=dict,
        blank=True,
        editable=False,
        help_text=_(
            "Options by name. Options with a column of their own or a default value are left out."
        ),
    )
    toolkit = models.CharField(
        max_length=64,
        blank=True,
        editable=False,
        help_text=_("The fingerprint of the Python program's tools."),
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="owned_agents",
    )
    groups = models.ManyToManyField(Group, blank=True, related_name="agents")
    everyone = models.BooleanField(
        default=False, help_text=_("Every signed-in user can start runs with it.")
    )
    mcp_tool = models.BooleanField(
        _("MCP tool"),
        default=False,
        db_default=False,
        help_text=_(
            "Users of the agent can also call it as a tool from an MCP client (docs/guides/mcp.md)."
        ),
    )
    is_active = models.BooleanField(default=True)
    version = models.PositiveIntegerField(default=0, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]
        permissions = [
            ("configure_sandbox", _("Can change an agent's sandbox and network")),
            ("share_agent", _("Can let others use an agent")),
            ("configure_approval", _("Can change an agent's approval rules and approvers")),
        ]

    def __init__(self, *columns: Any, **fields: Any) -> None:
        options = {name: fields.pop(name) for name in [*fields] if not hasattr(type(self), name)}
        super().__init__(*columns, **fields)
        for name, value in options.items():
            if not _options().is_option(name):
                raise TypeError(f"An agent has no field {name!r}.")
            setattr(self, name, value)

    def __str__(self) -> str:
        return self.name

    def __getattr__(self, name: str) -> Any:
        """Return an option without a column. Python calls this only if it finds no attribute."""
        if name.startswith("_") or not _options().is_option(name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self.definition[name] if name in self.definition else _options().option_default(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_") or hasattr(type(self), name) or not _options().is_option(name):
            super().__setattr__(name, value)
            return
        value = _options().json_value(value)
        others = {each: self.definition[each] for each in self.definition if each != name}
        changed = {} if value == _options().option_default(name) else {name: value}
        self.definition = {**others, **changed}


@cache
def _options() -> Any:
    # Imported at first use: pydantic costs 0.2 s, and the supervisor uses no agents.
    return import_module("agents.kernel.options")


class AgentVersion(models.Model):
    """The definition of an agent at the start of a run. Rows are never changed."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    spec = models.JSONField(help_text=_("The fields of `agents.spec.AgentSpec`."))
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["agent", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["agent", "number"], name="agent_version_number"),
        ]

    def __str__(self) -> str:
        return f"{self.agent_id} v{self.number}"
