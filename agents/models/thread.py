"""Threads: their owner and agent, the place of their files, and the start of their prompt."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from agents.ids import ID_LENGTH, new_id
from agents.models.agent import Agent, AgentVersion
from agents.models.json_text import JSONTextField


class KeptThreads(models.Manager["Thread"]):
    """Threads, without those that are being erased. All doors use this manager."""

    def get_queryset(self) -> models.QuerySet[Thread]:
        return super().get_queryset().filter(erased_at=None)


class Thread(models.Model):
    """A conversation with its workspace. Its runs follow one another."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=new_id, editable=False)
    key = models.CharField(
        max_length=200,
        null=True,
        blank=True,
        help_text=_("The session id that the caller chose, unique for each owner."),
    )
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="threads")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="threads", db_index=False
    )
    root = models.ForeignKey(
        "self",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="family",
        db_index=False,
        help_text=_(
            "For a subagent's thread, the thread whose shared files it uses. Null: not a "
            "subagent's."
        ),
    )
    forked_from = models.ForeignKey(
        "agents.Run",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="forks",
        help_text=_("The run from which it was forked."),
    )
    forked_turn = models.PositiveIntegerField(
        null=True, blank=True, help_text=_("The last turn that it copied from that run.")
    )
    title = models.CharField(max_length=200, blank=True)
    host = models.CharField(
        max_length=255,
        blank=True,
        help_text=_("The machine with the workspace. Empty: any machine can take it."),
    )
    placement = models.PositiveIntegerField(
        default=0,
        db_default=0,
        editable=False,
        help_text=_("How often it has left a machine. Only the value of the root thread is used."),
    )
    lost_host = models.CharField(
        max_length=255,
        blank=True,
        db_default="",
        editable=False,
        help_text=_(
            "The machine that died with its files. The model receives a note in the next run."
        ),
    )
    cannot_move = models.CharField(
        max_length=300,
        blank=True,
        db_default="",
        editable=False,
        help_text=_("Why its files could not leave a machine that is being drained."),
    )
    workspace_path = models.CharField(
        max_length=1000,
        blank=True,
        help_text=_(
            "The caller's directory that is used as the workspace. Empty: a directory of Vel."
        ),
    )
    workspace_rules = models.JSONField(
        default=dict,
        blank=True,
        help_text=_(
            "Lists of patterns for that directory: files that the agent can also change "
            "(allow_write) and files that it cannot change (protect)."
        ),
    )
    skill_directories = models.JSONField(
        default=list,
        blank=True,
        help_text=_("Skill directories on this machine that the caller named."),
    )
    sandbox_uid = models.PositiveBigIntegerField(
        null=True, blank=True, unique=True, help_text=_("The uid of its commands on the host.")
    )
    workspace_generation = models.PositiveBigIntegerField(
        default=0, help_text=_("The number of writes to the workspace and of commands.")
    )
    time_zone = models.CharField(max_length=64, default="UTC")
    prompt_values = models.JSONField(
        null=True,
        blank=True,
        help_text=_("The values of variables in prompts, by name, fixed when the thread starts."),
    )
    erased_at = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text=_("When erasing its rows and files started."),
    )
    copied_bytes = models.PositiveBigIntegerField(
        default=0,
        db_default=0,
        editable=False,
        help_text=_("Bytes of files that a fork copied and still has."),
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = KeptThreads()
    every = models.Manager()  # noqa: DJ012  # no field

    class Meta:
        ordering = ["-created_at"]
        base_manager_name = "every"
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "key"], condition=Q(key__isnull=False), name="thread_key_per_owner"
            ),
        ]
        indexes = [
            models.Index(fields=["owner", "id"], name="thread_of_owner"),
            models.Index(fields=["owner", "agent", "id"], name="thread_agent_of_owner"),
            models.Index(fields=["owner", "title", "id"], name="thread_title_of_owner"),
            models.Index(fields=["root", "id"], name="thread_of_root"),
            models.Index(
                fields=["erased_at"], condition=Q(erased_at__isnull=False), name="thread_erased"
            ),
        ]
        permissions = [("erase_thread", _("Can erase the threads that they may see"))]

    def __str__(self) -> str:
        return self.title or self.id


class Epoch(models.Model):
    """A part of a thread's history in which each model request starts with the same bytes.

    `head` is the JSON of `agents.providers.base.PromptHead`. A new version of the agent, another
    model or a compaction starts a new epoch, but never while tool calls are open.
    """

    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="epochs")
    number = models.PositiveIntegerField()
    agent_version = models.ForeignKey(AgentVersion, on_delete=models.PROTECT, related_name="+")
    first_run = models.PositiveIntegerField(
        null=True, help_text=_("The number of the run that started it. Null: not recorded.")
    )
    first_turn = models.PositiveIntegerField(
        default=1, help_text=_("The first model call of that run whose reply keeps its thoughts.")
    )
    part_keys = models.JSONField(
        default=dict,
        help_text=_("Keys of the features' content in the prompt, by feature."),
    )
    provider = models.CharField(max_length=50)
    head = JSONTextField(help_text=_("Sent byte for byte, so the order of keys matters."))
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["thread", "number"]
        constraints = [
            models.UniqueConstraint(fields=["thread", "number"], name="epoch_number"),
        ]

    def __str__(self) -> str:
        return f"{self.thread_id} epoch {self.number}"


class MiddlewareState(models.Model):
    """The state of one middleware in one session: the last value of its `get_state`."""

    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="middleware_states")
    name = models.CharField(max_length=100)
    state = JSONTextField()
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["thread", "name"]
        constraints = [
            models.UniqueConstraint(fields=["thread", "name"], name="middleware_state_name"),
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.thread_id}"
