"""A session: who talks with which agent, where its files lie, and what its prompt begins with."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from agents.ids import ID_LENGTH, new_id
from agents.models.agent import Agent, AgentVersion
from agents.models.json_text import JSONTextField


class Thread(models.Model):
    """A conversation with its workspace. Runs in it follow one another."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=new_id, editable=False)
    key = models.CharField(
        max_length=200,
        null=True,
        blank=True,
        help_text=_("The caller's own session id, unique per owner."),
    )
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="threads")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="threads"
    )
    root = models.ForeignKey(
        "self",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="family",
        help_text=_("The thread whose shared files a subagent's has. Null: a person's own."),
    )
    forked_from = models.ForeignKey(
        "agents.Run",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="forks",
        help_text=_("The run with whose conversation it begins."),
    )
    forked_turn = models.PositiveIntegerField(
        null=True, blank=True, help_text=_("The last turn of that run which it has.")
    )
    title = models.CharField(max_length=200, blank=True)
    host = models.CharField(max_length=255, help_text=_("The machine that holds the workspace."))
    workspace_path = models.CharField(
        max_length=1000,
        blank=True,
        help_text=_("A directory of the caller's that is the workspace. Empty: one of Vel's own."),
    )
    skill_directories = models.JSONField(
        default=list,
        blank=True,
        help_text=_("Directories of skills on this machine that the caller named."),
    )
    sandbox_uid = models.PositiveBigIntegerField(
        null=True, blank=True, unique=True, help_text=_("The host account of its commands.")
    )
    workspace_generation = models.PositiveBigIntegerField(
        default=0, help_text=_("Counts every write to the workspace and every command.")
    )
    time_zone = models.CharField(max_length=64, default="UTC")
    prompt_values = models.JSONField(
        null=True,
        blank=True,
        help_text=_("What variables in prompts stand for, by name, from its beginning on."),
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "key"], condition=Q(key__isnull=False), name="thread_key_per_owner"
            ),
        ]

    def __str__(self) -> str:
        return self.title or self.id


class Epoch(models.Model):
    """The part of a thread's history under one prompt: its first bytes never change.

    `head` is the JSON of `agents.providers.base.PromptHead`. A new version of the agent or another
    model begins a new epoch, never while tool calls are open.
    """

    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="epochs")
    number = models.PositiveIntegerField()
    agent_version = models.ForeignKey(AgentVersion, on_delete=models.PROTECT, related_name="+")
    first_run = models.PositiveIntegerField(
        null=True, help_text=_("The number of the run that began it. Null: not recorded.")
    )
    first_turn = models.PositiveIntegerField(
        default=1, help_text=_("Replies of that run from this model call on keep their thoughts.")
    )
    active_skills = models.JSONField(
        default=list, help_text=_("Versions of skills whose instructions are in the prompt.")
    )
    provider = models.CharField(max_length=50)
    head = JSONTextField(help_text=_("Its bytes are sent: the order of keys is part of them."))
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["thread", "number"]
        constraints = [
            models.UniqueConstraint(fields=["thread", "number"], name="epoch_number"),
        ]

    def __str__(self) -> str:
        return f"{self.thread_id} epoch {self.number}"
