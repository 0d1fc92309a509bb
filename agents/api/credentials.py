"""Credentials of other services, of the person who asks."""

from __future__ import annotations

from typing import ClassVar

from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_variables
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.base import ApiView, person
from agents.api.operations import operation
from agents.api.serializers.credentials import ConfiguredShape, SlackTokenBody
from agents.api.serializers.strict import read_body
from agents.models import CredentialProvider, TokenScope
from agents.selectors.credentials import credential_for
from agents.services.credentials import remove_credential, save_slack_token


class SlackCredential(ApiView):
    """`POST /credentials/slack {token}` stores what Slack knows; `DELETE` forgets it."""

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
        "delete_slack_token", "Forget the Slack bot token", answers={204: None}, errors=(404,)
    )
    def delete(self, request: Request) -> Response:
        remove_credential(CredentialProvider.SLACK, by=person(request))
        return Response(status=204)


class SlackStatus(ApiView):
    """`GET /credentials/slack/status`: whether a run of the caller could use Slack."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation("get_slack_status", "Whether Slack is connected", answer=ConfiguredShape)
    def get(self, request: Request) -> Response:
        found = credential_for(person(request).pk, CredentialProvider.SLACK)
        return Response({"configured": found is not None})
