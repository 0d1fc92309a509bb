"""Subagents that a team defines for an agent."""

from __future__ import annotations

from django.core.validators import MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.models import Agent


class Subagent(models.Model):
    """A subagent. Empty fields take the agent's values. Runs use `agents.spec.SubagentSpec`."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="subagents")
    name = models.SlugField(max_length=64)
    description = models.CharField(
        max_length=300, help_text=_("The description that the agent reads to choose a subagent.")
    )
    system_prompt = models.TextField(blank=True)
    provider = models.CharField(max_length=50, blank=True)
    model = models.CharField(max_length=200, blank=True)
    tools = models.JSONField(
        null=True,
        blank=True,
        help_text=_(
            'Names of its tools, for example ["ls", "read_file"]. Empty: the tools of its agent.'
        ),
    )
    skills = models.JSONField(
        default=list,
        blank=True,
        help_text=_(
            'Skills of its agent that are loaded at its start, for example ["data-query"]; it has '
            "only these. Empty: all skills of its agent, none of them loaded."
        ),
    )
    read_only = models.BooleanField(
        default=False,
        help_text=_("It can read its parent's workspace. It and its commands cannot change files."),
    )
    max_turns = models.PositiveIntegerField(default=50, validators=[MinValueValidator(1)])
    max_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    max_cost = models.DecimalField(
        max_digits=12, decimal_places=6, null=True, blank=True, help_text=_("US dollars.")
    )
    max_seconds = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["agent", "name"], name="subagent_name_per_agent"),
        ]

    def __str__(self) -> str:
        return self.name
