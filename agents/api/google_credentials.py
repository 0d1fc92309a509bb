"""The Google credential of the person who asks."""

from __future__ import annotations

import json
from typing import ClassVar

from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_variables
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.base import ApiView, person
from agents.api.operations import operation
from agents.api.serializers.credentials import ConfiguredShape, GoogleKeyBody
from agents.api.serializers.strict import read_body
from agents.models import CredentialProvider, TokenScope
from agents.selectors.credentials import credential_for
from agents.services.credentials import remove_credential
from agents.services.google_credentials import save_google_key


class GoogleCredential(ApiView):
    """`POST /credentials/google {key, …}` stores what Google takes; `DELETE` forgets it."""

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
        "delete_google_key", "Forget the Google credential", answers={204: None}, errors=(404,)
    )
    def delete(self, request: Request) -> Response:
        remove_credential(CredentialProvider.GOOGLE, by=person(request))
        return Response(status=204)


class GoogleStatus(ApiView):
    """`GET /credentials/google/status`: whether a run of the caller could use Google."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation("get_google_status", "Whether Google is connected", answer=ConfiguredShape)
    def get(self, request: Request) -> Response:
        found = credential_for(person(request).pk, CredentialProvider.GOOGLE)
        return Response({"configured": found is not None})
