"""The Slack token of the authenticated person."""

from __future__ import annotations

from typing import ClassVar

from django.urls import path
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_variables
from rest_framework.request import Request
from rest_framework.response import Response

from agents.doors.rest.base import ApiView, person
from agents.doors.rest.operations import operation
from agents.doors.rest.serializers import StrictSerializer, Text, read_body
from agents.features.credentials.public import credential_for, remove_credential
from agents.features.credentials.public_api import ConfiguredShape
from agents.features.slack.actions import PROVIDER, save_slack_token
from agents.models import TokenScope


class SlackTokenBody(StrictSerializer):
    token = Text(max_length=1000)


class SlackCredential(ApiView):
    """`POST /credentials/slack {token}` stores a token that Slack accepts; `DELETE` removes it."""

    scopes: ClassVar = {"POST": TokenScope.MANAGE, "DELETE": TokenScope.MANAGE}

    @method_decorator(sensitive_variables())
    @operation(
        "set_slack_token",
        "Store a Slack bot token",
        body=SlackTokenBody,
        answer=ConfiguredShape,
    )
    def post(self, request: Request) -> Response:
        user = person(request)
        save_slack_token(read_body(SlackTokenBody, request)["token"], by=user)
        return Response({"configured": True})

    @operation(
        "delete_slack_token", "Delete the Slack bot token", answers={204: None}, errors=(404,)
    )
    def delete(self, request: Request) -> Response:
        remove_credential(PROVIDER, by=person(request))
        return Response(status=204)


class SlackStatus(ApiView):
    """`GET /credentials/slack/status`: whether a run of the caller could use Slack."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation("get_slack_status", "Read whether Slack is connected", answer=ConfiguredShape)
    def get(self, request: Request) -> Response:
        found = credential_for(person(request).pk, PROVIDER)
        return Response({"configured": found is not None})


urlpatterns = [
    path("credentials/slack", SlackCredential.as_view(), name="credential-slack"),
    path("credentials/slack/status", SlackStatus.as_view(), name="credential-slack-status"),
]
