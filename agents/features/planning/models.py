"""The to-do list of a thread."""

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agents.models import Thread


class TodoStatus(models.TextChoices):
    PENDING = "pending", _("pending")
    IN_PROGRESS = "in_progress", _("in progress")
    COMPLETED = "completed", _("completed")
    BLOCKED = "blocked", _("blocked")


class Todo(models.Model):
    """An item of the plan. `position` orders the list and is the agent's id for the item."""

    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="todos")
    position = models.PositiveIntegerField()
    content = models.TextField()
    active_form = models.TextField(blank=True)
    status = models.CharField(max_length=20, choices=TodoStatus.choices, default=TodoStatus.PENDING)
    note = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)
    completed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["thread", "position"]
        constraints = [
            models.UniqueConstraint(fields=["thread", "position"], name="todo_position"),
        ]

    def __str__(self) -> str:
        return self.content


class TodoHeading(models.Model):
    """The current task of the agent, from its list. Without a row there is no current task."""

    thread = models.OneToOneField(
        Thread, on_delete=models.CASCADE, primary_key=True, related_name="+"
    )
    current_task = models.TextField()

    def __str__(self) -> str:
        return self.current_task
