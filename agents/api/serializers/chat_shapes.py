"""Serializers for the responses of `agents.api.chat`."""

from __future__ import annotations

from rest_framework import serializers

from agents.states import RunStatus


class ChatErrorShape(serializers.Serializer[object]):
    code = serializers.CharField()
    message = serializers.CharField()


class ChatRunShape(serializers.Serializer[object]):
    id = serializers.CharField()
    status = serializers.ChoiceField(choices=RunStatus.choices)
    error = ChatErrorShape(allow_null=True)


class ChatShape(serializers.Serializer[object]):
    """A chat. `messages` are UI messages of the Vercel AI SDK, oldest first."""

    id = serializers.CharField()
    thread = serializers.CharField()
    messages = serializers.ListField(child=serializers.DictField())
    latest_run = ChatRunShape(allow_null=True)
    next_before = serializers.IntegerField(allow_null=True)


class CancelledChatShape(serializers.Serializer[object]):
    """The cancelled run. `run` is null if no run was active."""

    run = serializers.CharField(allow_null=True)
