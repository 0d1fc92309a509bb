"""Serializers for runs."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable
from typing import Any

from django.db.models import F, OuterRef, QuerySet, Subquery
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Coalesce
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from agents.doors.rest.list_queries import CreatedQuery, ordering
from agents.doors.rest.serializers import AgentField, Flag, JsonObject, StrictSerializer, Text
from agents.doors.rest.triggers import StartedByShape
from agents.doors.rest.wire import check_json
from agents.kernel.triggers import trigger_kinds
from agents.models import Message, MessageRole, Run, RunClock, Upload
from agents.models.run import wait_reasons
from agents.selectors.disk_space import waiting_for_space
from agents.selectors.family import with_child_count
from agents.selectors.held import is_held
from agents.selectors.starters import listed_started_by, starters, with_trigger_name
from agents.services.agent_definitions.actions import SCRIPTED
from agents.states import RunStatus


class RunBody(StrictSerializer):
    """The fields of `agents.services.runs.start.RunRequest`, except those for local callers."""

    agent = AgentField()
    message = Text()
    thread = Text(max_length=64, required=False, allow_null=True)
    key = Text(max_length=200, required=False, allow_null=True)
    queue = Flag(default=False)
    model = Text(max_length=300, required=False, allow_blank=True)
    output_schema = JsonObject(required=False, allow_null=True)
    # Serializers remove declared fields from the class, so this does not hide `Field.context`.
    context = JsonObject(required=False, allow_null=True)  # type: ignore[assignment]


class CancelBody(StrictSerializer):
    reason = Text(max_length=1000, default="", allow_blank=True)


RUN_ORDER = {"created_at": "id"}
"""Ids start with the time, so they have the same order."""


class RunListQuery(CreatedQuery):
    status = serializers.ChoiceField(choices=RunStatus.values, required=False)
    agent = AgentField(required=False)
    thread = Text(max_length=64, required=False)
    started_by = serializers.ChoiceField(choices=starters(), required=False)
    # Serializers remove declared fields from the class, so this does not hide `Field.parent`.
    parent = Text(max_length=64, required=False)  # type: ignore[assignment]
    ordering = ordering("-created_at")

    def get_fields(self) -> dict[str, Any]:
        """Return the declared fields, with a field for the trigger id of each kind of trigger."""
        triggers = {kind.source: Text(max_length=64, required=False) for kind in trigger_kinds()}
        return {**super().get_fields(), **triggers}


def with_run_columns(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Annotate the columns of `RunShape`, in one query, without the prompts of pinned versions."""
    final = Message.objects.filter(run=OuterRef("pk"), role=MessageRole.ASSISTANT)
    return with_trigger_name(with_child_count(runs.select_related("clock"))).annotate(
        agent_slug=F("agent_version__agent__slug"),
        provider=_of_spec("provider"),
        model=_of_spec("model"),
        final_content=Subquery(final.order_by("-turn").values("content")[:1]),
    )


def _of_spec(field: str) -> Coalesce:
    """Return an expression for a field of `Run.spec`."""
    return Coalesce(
        KeyTextTransform(field, "subagent_spec"), KeyTextTransform(field, "agent_version__spec")
    )


class UsageShape(serializers.Serializer[RunClock]):
    input_tokens = serializers.IntegerField()
    output_tokens = serializers.IntegerField()
    cache_read_tokens = serializers.IntegerField()
    cache_write_tokens = serializers.IntegerField()
    turns = serializers.IntegerField(source="turn")


class RunShape(serializers.Serializer[Run]):
    """A run. `cost` is in US dollars, or null if a price is unknown.

    `subagent` is the name of the subagent, or empty if a user or a trigger started the run.
    `children` is the number of runs that it has delegated to. `source` is the entry point that it
    came through.
    """

    id = serializers.CharField()
    thread = serializers.CharField(source="thread_id")
    # Serializers remove declared fields from the class, so this does not hide `Field.parent`.
    parent = serializers.CharField(source="parent_id", allow_null=True)  # type: ignore[assignment]
    resumed_from = serializers.CharField(source="resumed_from_id", allow_null=True)
    depth = serializers.IntegerField()
    subagent = serializers.CharField()
    children = serializers.IntegerField(source="child_count")
    agent = serializers.CharField(source="agent_slug")
    # Serializers remove declared fields from the class, so this does not hide `Field.source`.
    source = serializers.CharField()  # type: ignore[assignment]
    started_by = serializers.SerializerMethodField()
    provider = serializers.CharField()
    model = serializers.CharField()
    scripted = serializers.SerializerMethodField()
    status = serializers.ChoiceField(choices=RunStatus.choices)
    wait_reason = serializers.ChoiceField(choices=wait_reasons())
    held = serializers.SerializerMethodField()
    waiting_for_space = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField(format="iso-8601", default_timezone=datetime.UTC)
    started_at = serializers.DateTimeField(
        format="iso-8601", default_timezone=datetime.UTC, allow_null=True
    )
    ended_at = serializers.DateTimeField(
        format="iso-8601", default_timezone=datetime.UTC, allow_null=True
    )
    finish_reason = serializers.CharField()
    error = serializers.SerializerMethodField()
    usage = UsageShape(source="clock")
    cost = serializers.DecimalField(
        source="clock.cost",
        max_digits=None,
        decimal_places=6,
        coerce_to_string=True,
        allow_null=True,
    )
    output = serializers.SerializerMethodField()
    structured_output = serializers.SerializerMethodField()

    def get_started_by(self, run: Run) -> StartedByShape:
        """Return what started the run. All users who can see the run can see the trigger's name."""
        return listed_started_by(run)  # type: ignore[return-value]  # as that shape shows it

    def get_held(self, run: Run) -> bool:
        """Whether the run came from a backup and waits for a person who resumes or cancels it."""
        return is_held(run)

    def get_waiting_for_space(self, run: Run) -> str | None:
        """Return a message while the run waits for disk space, otherwise null."""
        return waiting_for_space(run) or None

    def get_scripted(self, run: Run) -> bool:
        """Whether a script played the model, so that clients can mark the answer as scripted."""
        return run.provider == SCRIPTED  # type: ignore[attr-defined]  # annotated

    def get_error(self, run: Run) -> dict[str, str] | None:
        if not run.error_code:
            return None
        return {"code": run.error_code, "message": run.error_message}

    def get_structured_output(self, run: Run) -> Any:
        """Return the structured value of the final answer, if an output schema was given."""
        return run.structured_output

    def get_output(self, run: Run) -> str | None:
        """Return the text of the final answer, or null unless the run is completed."""
        content: str | None = run.final_content  # type: ignore[attr-defined]  # annotated
        if run.status != RunStatus.COMPLETED or content is None:
            return None
        return Message(content=content).text


class ArtifactShape(serializers.Serializer[object]):
    """A file that a run added or changed.

    `size` (bytes) and `url` are null if it no longer exists.
    """

    path = serializers.CharField()
    what = serializers.ChoiceField(choices=["added", "changed"])
    size = serializers.IntegerField(allow_null=True)
    url = serializers.CharField(allow_null=True)


class ArtifactsShape(serializers.Serializer[object]):
    """Files. `truncated`: there are more, or the changes of some steps are no longer stored."""

    results = ArtifactShape(many=True)
    truncated = serializers.BooleanField()


class SubagentShape(RunShape):
    """A run. `subagents` are the runs that it has delegated to, in the same form."""

    subagents = serializers.SerializerMethodField()

    def get_subagents(self, run: Run) -> list[dict[str, Any]]:
        return []


class SubagentsShape(serializers.Serializer[object]):
    """A tree of runs. If `truncated` is true, there are more than 500."""

    results = SubagentShape(many=True)
    truncated = serializers.BooleanField()


_AS_JSON = ("queue", "output_schema", "context")
"""Fields of a run that are not text. A form contains them as JSON."""


class StoredUploadShape(serializers.Serializer[Upload]):
    """An upload. `path` and `markdown` are paths in the agent's files.

    `run` is the run whose message mentions the file; null means the next run. `markdown` is set
    when that run has started. `note` gives the reason if there is no Markdown, or if a picture is
    not sent to the model.
    """

    id = serializers.CharField()
    path = serializers.CharField()
    name = serializers.CharField(source="original_name")
    size = serializers.IntegerField()
    media_type = serializers.CharField()
    run = serializers.CharField(source="run_id", allow_null=True)
    markdown = serializers.SerializerMethodField()
    note = serializers.CharField()
    created_at = serializers.DateTimeField(format="iso-8601", default_timezone=datetime.UTC)

    def get_markdown(self, upload: Upload) -> str | None:
        return upload.rendition_path or None


class StoredUploadsShape(serializers.Serializer[object]):
    """Uploads of a thread, without pages: all for a GET, the new ones for a POST."""

    results = StoredUploadShape(many=True)


class RunForm(RunBody):
    """The fields of a run, and its files. Fields that are not text are JSON."""

    file = serializers.ListField(child=serializers.FileField(), required=False)


def run_body_of(request: Request) -> dict[str, Any]:
    """Return the fields of a form as those of a JSON body. Raises `ValidationError`."""
    found: dict[str, Any] = {}
    for name, given in request.POST.lists():
        if len(given) > 1:
            raise ValidationError({name[:100]: ["Given more than once."]})
        found[name] = _value(name, str(given[0]))
    fields = RunBody(data=found)
    fields.is_valid(raise_exception=True)
    return dict(fields.validated_data)


def _value(name: str, text: str) -> Any:
    if name not in _AS_JSON:
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ValidationError({name: ["Must be JSON."]}) from None
    check_json(value)
    return value


def show_uploads(uploads: Iterable[Upload]) -> dict[str, Any]:
    """Return the uploads in the form of `StoredUploadsShape`."""
    return {"results": [StoredUploadShape(upload).data for upload in uploads]}
