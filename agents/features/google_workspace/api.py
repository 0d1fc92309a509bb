"""The Google credential of the authenticated person."""

from __future__ import annotations

import json
from typing import ClassVar

from django.urls import path
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_variables
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.doors.rest.base import ApiView, person
from agents.doors.rest.operations import operation
from agents.doors.rest.serializers import JsonObject, StrictSerializer, Text, read_body
from agents.features.credentials.public import credential_for, remove_credential
from agents.features.credentials.public_api import ConfiguredShape
from agents.features.google_workspace.actions import PROVIDER, save_google_key
from agents.features.google_workspace.client.access import OFFERED
from agents.models import TokenScope


class GoogleKeyBody(StrictSerializer):
    key = JsonObject(
        help_text="The JSON file of a service account, or one of the type authorized_user."
    )
    subject = Text(
        max_length=320,
        required=False,
        default="",
        allow_blank=True,
        help_text="The user that a service account acts as.",
    )
    access = serializers.ListField(
        child=Text(max_length=50),
        required=False,
        default=list,
        max_length=len(OFFERED),
        help_text=f"Permissions of a service account: {', '.join(one.name for one in OFFERED)}.",
    )


class GoogleCredential(ApiView):
    """`POST /credentials/google {key, …}` stores a key that Google accepts; `DELETE` removes it."""

    scopes: ClassVar = {"POST": TokenScope.MANAGE, "DELETE": TokenScope.MANAGE}

    @method_decorator(sensitive_variables())
    @operation(
        "set_google_key",
        "Store a Google credential",
        body=GoogleKeyBody,
        answer=ConfiguredShape,
    )
    def post(self, request: Request) -> Response:
        user = person(request)
        given = read_body(GoogleKeyBody, request)
        save_google_key(
            json.dumps(given["key"]),
            subject=given["subject"],
            access=tuple(given["access"]),
            by=user,
        )
        return Response({"configured": True})

    @operation(
        "delete_google_key", "Delete the Google credential", answers={204: None}, errors=(404,)
    )
    def delete(self, request: Request) -> Response:
        remove_credential(PROVIDER, by=person(request))
        return Response(status=204)


class GoogleStatus(ApiView):
    """`GET /credentials/google/status`: whether a run of the caller could use Google."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation("get_google_status", "Read whether Google is connected", answer=ConfiguredShape)
    def get(self, request: Request) -> Response:
        found = credential_for(person(request).pk, PROVIDER)
        return Response({"configured": found is not None})


urlpatterns = [
    path("credentials/google", GoogleCredential.as_view(), name="credential-google"),
    path("credentials/google/status", GoogleStatus.as_view(), name="credential-google-status"),
]
