"""Keys of providers in the REST API. They can be written, and never read."""

from __future__ import annotations

from typing import ClassVar

from django.urls import path
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_variables
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.doors.rest.base import ApiView, person
from agents.doors.rest.managed.coverage import RestObject
from agents.doors.rest.operations import operation
from agents.doors.rest.serializers import StrictSerializer, Text, read_body
from agents.features.provider_keys.actions import (
    LONGEST,
    MANAGE,
    check_may_manage,
    remove_key,
    set_key,
    test_key,
)
from agents.features.provider_keys.queries import KeyState, key_states
from agents.models import TokenScope
from agents.providers.registry import MAKERS
from agents.services.errors import NotFound


class ProviderKeyBody(StrictSerializer):
    key = Text(max_length=LONGEST, help_text="It is stored encrypted and never shown.")


class ProviderKeyShape(serializers.Serializer[KeyState]):
    """The key of a provider, without the key. `in_use` is where the key in use comes from."""

    provider = serializers.CharField()
    origin = serializers.CharField(help_text="The server of the present base URL.")
    in_use = serializers.ChoiceField(choices=["settings", "stored", "none"])
    setting = serializers.CharField(help_text="The setting that precedes a stored key.")
    ending = serializers.CharField(
        allow_blank=True, help_text="The last characters of the key in use, if it is long."
    )
    is_stored = serializers.BooleanField()
    stored_origin = serializers.CharField(
        allow_blank=True, help_text="The only server that gets the stored key."
    )
    set_by = serializers.CharField(allow_blank=True)
    set_at = serializers.DateTimeField(allow_null=True)
    problem = serializers.CharField(
        allow_blank=True, help_text="Why the stored key cannot be used."
    )


class ProviderKeyListShape(serializers.Serializer[object]):
    results = ProviderKeyShape(many=True)


class KeyCheckShape(serializers.Serializer[object]):
    works = serializers.BooleanField()
    text = serializers.CharField(help_text="The answer of the provider in one line.")


class ProviderKeys(ApiView):
    """`GET /provider-keys`: all providers with a key, and where it comes from."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation("list_provider_keys", "List the keys of providers", answer=ProviderKeyListShape)
    def get(self, request: Request) -> Response:
        check_may_manage(person(request))
        return Response(ProviderKeyListShape({"results": key_states()}).data)


class ProviderKeyView(ApiView):
    """`PUT /provider-keys/{provider} {key}` stores a key; `DELETE` removes the stored one."""

    scopes: ClassVar = {
        "GET": TokenScope.READ,
        "PUT": TokenScope.ADMIN,
        "DELETE": TokenScope.ADMIN,
    }

    @operation("get_provider_key", "Read the state of a provider's key", answer=ProviderKeyShape)
    def get(self, request: Request, provider: str) -> Response:
        check_may_manage(person(request))
        return _shown(provider)

    @method_decorator(sensitive_variables())
    @operation(
        "set_provider_key",
        "Store a provider's key",
        body=ProviderKeyBody,
        answer=ProviderKeyShape,
    )
    def put(self, request: Request, provider: str) -> Response:
        user = person(request)
        check_may_manage(user)
        set_key(provider, read_body(ProviderKeyBody, request)["key"], by=user)
        return _shown(provider)

    @operation("remove_provider_key", "Remove a stored key", answers={204: None})
    def delete(self, request: Request, provider: str) -> Response:
        remove_key(provider, by=person(request))
        return Response(status=204)


class ProviderKeyTest(ApiView):
    """`POST /provider-keys/{provider}/test`: ask the provider whether it accepts the key in use."""

    scopes: ClassVar = {"POST": TokenScope.ADMIN}

    @operation(
        "test_provider_key", "Test the key of a provider", answer=KeyCheckShape, errors=(409,)
    )
    def post(self, request: Request, provider: str) -> Response:
        found = test_key(provider, by=person(request))
        return Response({"works": found.works, "text": found.text})


def _shown(provider: str) -> Response:
    state = next((each for each in key_states() if each.provider == provider), None)
    if state is None:
        raise NotFound(f"There is no provider {provider[:50]!r}; there are: {', '.join(MAKERS)}.")
    return Response(ProviderKeyShape(state).data)


_WHO = f"`{MANAGE}`"
OBJECTS = [
    RestObject(
        model=None,
        path="provider-keys",
        list=("list_provider_keys", _WHO),
        read=("get_provider_key", _WHO),
        create=("set_provider_key", _WHO),
        change=("set_provider_key", _WHO),
        delete=("remove_provider_key", _WHO),
        further={"test_provider_key": _WHO},
        scope=TokenScope.ADMIN.value,
    )
]
urlpatterns = [
    path("provider-keys", ProviderKeys.as_view(), name="provider-keys"),
    path("provider-keys/<slug:provider>", ProviderKeyView.as_view(), name="provider-key"),
    path("provider-keys/<slug:provider>/test", ProviderKeyTest.as_view(), name="provider-key-test"),
]
