"""Resuming and forking runs, on the wire."""

from __future__ import annotations

from rest_framework import serializers

from agents.api.serializers.runs import RunShape
from agents.api.serializers.strict import StrictSerializer, Text
from agents.api.serializers.threads import ThreadShape
from agents.services.fork_files import CHOICES, THEN

PINNED, CURRENT = "pinned", "current"


class ResumeBody(StrictSerializer):
    """`message`: what the agent is told; without one, to continue."""

    message = Text(required=False, allow_null=True)


class ForkBody(StrictSerializer):
    """`agents.services.forking.ForkRequest`"""

    step = serializers.IntegerField(
        min_value=0,
        max_value=2**31 - 1,
        required=False,
        allow_null=True,
        help_text="The last turn that the new thread has; 0 for the message alone.",
    )
    message = Text(required=False, allow_null=True, help_text="What begins a run in it.")
    thread_key = Text(max_length=200, required=False, allow_null=True)
    version = serializers.ChoiceField(
        choices=[PINNED, CURRENT],
        default=PINNED,
        help_text="Of the agent, for the run that `message` begins: the old run's, or today's.",
    )
    files = serializers.ChoiceField(
        choices=CHOICES,
        default=THEN,
        help_text="As they were after the step, as they are now, or none.",
    )


class LeftOutShape(serializers.Serializer[object]):
    path = serializers.CharField()
    reason = serializers.CharField()


class CopiedFilesShape(serializers.Serializer[object]):
    written = serializers.IntegerField()
    left_out = LeftOutShape(many=True)


class ForkShape(serializers.Serializer[object]):
    """`run` is null without a message."""

    thread = ThreadShape()
    run = RunShape(allow_null=True)
    files = CopiedFilesShape()
