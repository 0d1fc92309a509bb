"""Files that people attach to their messages, and the pictures that models received."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.ids import ID_LENGTH, new_id
from agents.models.run import Run
from agents.models.thread import Thread


class Upload(models.Model):
    """A file in a thread's user_uploads.

    `rendition` is the name of its Markdown file in the same directory. When its run has started,
    `has_rendition` says whether the Markdown file exists, and `note` why not. `run` is null until a
    message mentions the upload.
    """

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=new_id, editable=False)
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="uploads")
    run = models.ForeignKey(
        Run,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="uploads",
        help_text=_("The run whose message mentions it. Null: the next run."),
    )
    name = models.CharField(max_length=255, help_text=_("The file name in user_uploads."))
    path = models.CharField(max_length=300, help_text=_("The path as the agent sees it."))
    original_name = models.CharField(max_length=255, help_text=_("As it came."))
    reader = models.CharField(
        max_length=20,
        blank=True,
        help_text=_("The converter to Markdown. Empty: it is not converted."),
    )
    media_type = models.CharField(
        max_length=100, help_text=_("The media type, from the name and content.")
    )
    size = models.PositiveBigIntegerField(help_text=_("Bytes."))
    rendition = models.CharField(max_length=255, blank=True)
    has_rendition = models.BooleanField(default=False)
    note = models.CharField(
        max_length=300,
        blank=True,
        help_text=_("Why there is no Markdown file, or why it is not shown."),
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["thread", "name"], name="upload_name"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def rendition_path(self) -> str:
        """The path of its Markdown file as the agent sees it, or empty without one."""
        return f"{self.path.rpartition('/')[0]}/{self.rendition}" if self.has_rendition else ""


class UploadContent(models.Model):
    """The bytes of an upload if there are several hosts. Each copies them into its workspaces."""

    upload = models.OneToOneField(
        Upload, on_delete=models.CASCADE, primary_key=True, related_name="content"
    )
    data = models.BinaryField()
    rendition = models.BinaryField(
        null=True, help_text=_("Its Markdown file, after a run has created it.")
    )

    def __str__(self) -> str:
        return self.upload_id


class MessageImage(models.Model):
    """A picture in a message. Blocks refer to it by its id, which keeps their rows small.

    It is kept as long as the conversation, even if its upload is deleted: the input of a model does
    not change afterwards.
    """

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=new_id, editable=False)
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="images")
    media_type = models.CharField(max_length=100)
    size = models.PositiveIntegerField(help_text=_("Bytes."))
    data = models.BinaryField()

    def __str__(self) -> str:
        return self.id
