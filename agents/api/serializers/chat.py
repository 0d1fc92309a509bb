"""The request body of the Vercel AI SDK client: the whole history. Only the last message is used.

The client controls the history, so it is not trusted. Vel takes only the text and files of the
person's last message, or the responses to approval requests. It looks up every id.
"""

from __future__ import annotations

import base64
import binascii
import mimetypes
from dataclasses import dataclass
from typing import Any

from django.core.files.base import ContentFile
from rest_framework import serializers

from agents.doors.rest.serializers import JsonObject, StrictSerializer, Text
from agents.events.projections.ui import DEFAULT_VERSION, DIALECTS
from agents.services.errors import InvalidRequest
from agents.states import RunStatus

CHAT_ID_CHARACTERS = 200
MESSAGE_ID_CHARACTERS = 200
MAX_ANSWERS = 100
VERSIONS = sorted(DIALECTS)


class ChatQuery(StrictSerializer):
    version = serializers.ChoiceField(
        choices=VERSIONS,
        required=False,
        help_text="The major version of the package `ai`. Without it, the one in `User-Agent` "
        f"(`ai-sdk/7.0.1`), or {DEFAULT_VERSION}.",
    )


class HistoryQuery(ChatQuery):
    before = serializers.IntegerField(min_value=1, max_value=2**31 - 1, required=False)
    limit = serializers.IntegerField(min_value=1, max_value=100, default=20)


class ChatBody(StrictSerializer):
    """The fields `id, messages, trigger, messageId?` that the client sends, and Vel's `context`."""

    id = Text(max_length=CHAT_ID_CHARACTERS)
    messages = serializers.ListField(min_length=1)
    trigger = serializers.ChoiceField(choices=["submit-message", "regenerate-message"])
    messageId = Text(  # the client's name
        max_length=MESSAGE_ID_CHARACTERS, required=False, allow_null=True
    )
    # Serializers remove declared fields from the class, so this does not hide `Field.context`.
    context = JsonObject(required=False, allow_null=True)  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Answer:
    """A response to an approval request, identified by its id."""

    approval_id: str
    approved: bool
    reason: str


@dataclass(frozen=True, slots=True)
class UserMessage:
    """A message from the person. The client generates the id."""

    id: str
    text: str
    files: tuple[ContentFile[bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Answers:
    """Responses about calls in an assistant message. The id of that message is the run's id."""

    run_id: str
    answers: tuple[Answer, ...]


def last_message(messages: list[Any]) -> UserMessage | Answers:
    """Return the content of the last message. Raises `InvalidRequest` if there is nothing to do."""
    message = messages[-1]
    if not isinstance(message, dict):
        raise _unfit("the last one is no object")
    parts = message.get("parts")
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise _unfit("the last one has no list of parts")
    message_id = message.get("id")
    if not isinstance(message_id, str) or not 0 < len(message_id) <= MESSAGE_ID_CHARACTERS:
        raise _unfit("the last one has no id")
    if message.get("role") == "user":
        files = tuple(file_in(part) for part in parts if part.get("type") == "file")
        return UserMessage(message_id, _text_of(parts), files)
    if message.get("role") == "assistant":
        return Answers(message_id, _answers_in(parts))
    raise _unfit("the last one is neither a person's nor the assistant's")


def _text_of(parts: list[dict[str, Any]]) -> str:
    texts = []
    for part in parts:
        if part.get("type") == "file":
            continue
        if part.get("type") != "text" or not isinstance(part.get("text"), str):
            raise _unfit("a person's message has parts of the types text and file alone")
        texts.append(part["text"])
    return "\n\n".join(texts)


def _answers_in(parts: list[dict[str, Any]]) -> tuple[Answer, ...]:
    answers = []
    for part in parts:
        if part.get("state") != "approval-responded":
            continue
        approval = part.get("approval")
        if not isinstance(approval, dict) or not isinstance(approval.get("id"), str):
            raise _unfit("an answer to a request for approval has no id")
        approved, reason = approval.get("approved"), approval.get("reason") or ""
        if not isinstance(approved, bool) or not isinstance(reason, str):
            raise _unfit("`approved` is true or false, and `reason` is text")
        answers.append(Answer(approval["id"], approved, reason))
    if not answers:
        raise _unfit("the last one is the assistant's and answers no request for approval")
    if len(answers) > MAX_ANSWERS:
        raise _unfit(f"it answers more than {MAX_ANSWERS} requests")
    if len({answer.approval_id for answer in answers}) < len(answers):
        raise _unfit("it answers one request for approval twice")
    return tuple(answers)


def _unfit(problem: str) -> InvalidRequest:
    return InvalidRequest(f"Invalid messages: {problem}.")


MAX_NAME = 200


def file_in(part: dict[str, Any]) -> ContentFile[bytes]:
    """Return the file of a part `{type, mediaType, filename?, url}`.

    Vel never fetches other URLs. Raises `InvalidRequest`. The upload service detects the type of
    the content.
    """
    url, media_type, name = part.get("url"), part.get("mediaType"), part.get("filename")
    if not isinstance(url, str) or not isinstance(media_type, str):
        raise InvalidRequest("A file requires `url` and `mediaType`.")
    head, comma, text = url.partition(",")
    if not head.lower().startswith("data:") or not head.lower().endswith(";base64") or not comma:
        raise InvalidRequest(
            "The `url` of a file must be a data: URL in base64. Other URLs are not fetched. Upload "
            "the file to the thread instead (POST /threads/{id}/uploads).",
            code="file_elsewhere",
        )
    if name is not None and (not isinstance(name, str) or len(name) > MAX_NAME):
        raise InvalidRequest(f"The name of a file must be text of at most {MAX_NAME} characters.")
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidRequest("The data: URL of a file is not valid base64.") from None
    return ContentFile(data, name or f"file{mimetypes.guess_extension(media_type) or ''}")


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
