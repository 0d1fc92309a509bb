"""The shapes of skills in responses, which `skills_app.api.serializers` builds."""

from __future__ import annotations

from rest_framework import serializers

from agents.states import RunStatus
from skills_app.api.serializers import SCOPES
from skills_app.models import Trust


class SkillShape(serializers.Serializer[object]):
    """`version` is the one that agents get, and `findings` the number of its findings.

    While no version is accepted, `version` is null, `trust` is that of the latest version,
    `findings` is 0, and `tags` is empty.
    """

    id = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField()
    scope = serializers.ChoiceField(choices=SCOPES)
    tags = serializers.ListField(child=serializers.CharField())
    trust = serializers.ChoiceField(choices=Trust.choices, allow_null=True)
    version = serializers.IntegerField(allow_null=True)
    latest_version = serializers.IntegerField()
    content_hash = serializers.CharField(allow_null=True)
    findings = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class FoundSkillShape(SkillShape):
    """`score`, from 0 to 1, is how well the skill matches `q`. It is missing without `q`."""

    optional = ("score",)

    score = serializers.FloatField(required=False)


class AgentSkillShape(SkillShape):
    """A skill as one agent has it.

    `waits`: a later version is not accepted yet. `collides`: the agent uses another skill of the
    same name instead.
    """

    instructions = serializers.CharField()
    enabled = serializers.BooleanField()
    waits = serializers.BooleanField()
    collides = serializers.BooleanField()


class AgentSkillsShape(serializers.Serializer[object]):
    skills = AgentSkillShape(many=True)


class OneAgentSkillShape(serializers.Serializer[object]):
    skill = AgentSkillShape()


class FindingShape(serializers.Serializer[object]):
    """A finding of the scan at import. `line` counts from 1; 0 is the file as a whole."""

    severity = serializers.CharField()
    code = serializers.CharField()
    path = serializers.CharField()
    line = serializers.IntegerField()
    message = serializers.CharField()
    excerpt = serializers.CharField()


class SkillVersionShape(serializers.Serializer[object]):
    number = serializers.IntegerField()
    is_current = serializers.BooleanField()
    trust = serializers.ChoiceField(choices=Trust.choices)
    content_hash = serializers.CharField()
    file_count = serializers.IntegerField()
    size_bytes = serializers.IntegerField()
    findings = FindingShape(many=True)
    # Django REST framework removes declared fields from the class, so this hides no `Field.source`.
    source = serializers.CharField()  # type: ignore[assignment]
    origin = serializers.CharField()
    reason = serializers.CharField()
    created_by = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()
    reviewed_by = serializers.CharField(allow_null=True)
    reviewed_at = serializers.DateTimeField(allow_null=True)


class SkillHeadShape(serializers.Serializer[object]):
    """The fields of a SKILL.md, as Vel understands them."""

    name = serializers.CharField()
    description = serializers.CharField()
    license = serializers.CharField()
    compatibility = serializers.CharField()
    metadata = serializers.DictField(child=serializers.CharField())
    allowed_tools = serializers.ListField(child=serializers.CharField(), allow_null=True)
    title = serializers.CharField()
    version = serializers.CharField()
    author = serializers.CharField()
    tags = serializers.ListField(child=serializers.CharField())
    triggers = serializers.ListField(child=serializers.CharField())
    requires = serializers.ListField(child=serializers.CharField())
    tools_required = serializers.ListField(child=serializers.CharField())
    priority = serializers.IntegerField()
    enabled = serializers.BooleanField()
    extra = serializers.DictField(child=serializers.CharField())


class SkillUsageShape(serializers.Serializer[object]):
    """The use of a version by runs.

    `shown` and `loaded` count the runs that had it and that loaded it, and `files_read` the reads
    of its files. `endings` counts, by status, the runs that loaded it or read its files.
    """

    version = serializers.IntegerField()
    shown = serializers.IntegerField()
    loaded = serializers.IntegerField()
    files_read = serializers.IntegerField()
    endings = serializers.DictField(
        child=serializers.IntegerField(), help_text=f"By {', '.join(RunStatus.values)}."
    )


class WholeSkillShape(SkillShape):
    head = SkillHeadShape(allow_null=True)
    instructions = serializers.CharField()
    versions = SkillVersionShape(many=True)
    usage = SkillUsageShape(many=True)


class ImportedSkillShape(serializers.Serializer[object]):
    """`created`: these bytes are new. `waits`: agents get it only after a review."""

    skill = SkillShape()
    version = SkillVersionShape()
    created = serializers.BooleanField()
    waits = serializers.BooleanField()


class ChangedVersionShape(serializers.Serializer[object]):
    skill = SkillShape()
    version = SkillVersionShape()


class PackageFileShape(serializers.Serializer[object]):
    path = serializers.CharField()
    size_bytes = serializers.IntegerField()
    executable = serializers.BooleanField()
    sha256 = serializers.CharField()


class PackageFilesShape(serializers.Serializer[object]):
    version = serializers.IntegerField()
    content_hash = serializers.CharField()
    results = PackageFileShape(many=True)
