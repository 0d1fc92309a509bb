"""The forms of chats in answers, as `agents.api.chat` builds them."""

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
    """`messages` are UI messages of the Vercel AI SDK, oldest first; for older: `next_before`."""

    id = serializers.CharField()
    thread = serializers.CharField()
    messages = serializers.ListField(child=serializers.DictField())
    latest_run = ChatRunShape(allow_null=True)
    next_before = serializers.IntegerField(allow_null=True)


class CancelledChatShape(serializers.Serializer[object]):
    """`run` is null where none was under way."""

    run = serializers.CharField(allow_null=True)
