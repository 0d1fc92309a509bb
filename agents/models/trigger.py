"""Triggers start runs without a person. This module has the fields that all kinds share."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.ids import ID_LENGTH, new_id
from agents.kernel.features import collect
from agents.models.agent import Agent
from agents.models.run import Run
from agents.models.thread import Thread


class ThreadPolicy(models.TextChoices):
    NEW = "new", _("a new thread each time")
    ONE = "one", _("one thread for all runs")


class Trigger(models.Model):
    """A message to `agent` that is sent in the name of its owner.

    A feature has a subclass for its kind of trigger, lists the kind in `triggers.TRIGGERS`, and
    connects `forget_trigger` to the `pre_delete` signal of the subclass. The runs of a trigger have
    its id as `Run.trigger`.
    """

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=new_id, editable=False)
    name = models.CharField(max_length=100)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="%(class)ss",
        help_text=_("The owner of its runs. The owner's permissions and limits apply."),
    )
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="%(class)ss")
    message = models.TextField()
    thread_policy = models.CharField(
        max_length=10, choices=ThreadPolicy.choices, default=ThreadPolicy.NEW
    )
    thread = models.ForeignKey(
        Thread,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        editable=False,
        help_text=_("The thread of all its runs, after the first run."),
    )
    is_enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True
        ordering = ["name", "id"]

    def __str__(self) -> str:
        return self.name


def forget_trigger(instance: Trigger, **kwargs: Any) -> None:
    """Detach runs from a trigger that is being deleted, and let features delete data about it."""
    Run.every.filter(trigger=instance.pk).update(trigger=None)
    for _config, forget in collect("triggers", "BEFORE_DELETION"):
        forget(instance.pk)
