"""The views `/schema`, the OpenAPI document, and `/docs`, a page of it without scripts."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar

import yaml
from django.contrib.auth.views import redirect_to_login
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from rest_framework import serializers
from rest_framework.exceptions import NotAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from agents.doors.rest.base import SESSION_ONLY, ApiView
from agents.doors.rest.operations import Content, operation
from agents.doors.rest.serializers import StrictSerializer, read_query
from agents.models import TokenScope

JSON, YAML = "application/vnd.oai.openapi+json", "application/vnd.oai.openapi"
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)


class SchemaQuery(StrictSerializer):
    format = serializers.ChoiceField(choices=["json", "yaml"], default="json")


class Schema(ApiView):
    """The endpoint `GET /schema?format=json|yaml`: the OpenAPI document of this API."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation(
        "get_schema",
        "Read this document",
        query=SchemaQuery,
        answer=Content((JSON, YAML), schema={"type": ["object", "string"]}),
    )
    def get(self, request: Request) -> HttpResponse:
        asked = read_query(SchemaQuery, request)["format"]
        document = document_for(request)
        if asked == "yaml":
            return HttpResponse(yaml.safe_dump(document, sort_keys=False), content_type=YAML)
        return HttpResponse(self.renderer_classes[0]().render(document), content_type=JSON)


class Docs(ApiView):
    """The endpoint `GET /docs`, for people. Redirects to the login page."""

    scopes: ClassVar = {"GET": SESSION_ONLY}

    @operation(
        "get_docs",
        "Read this document as a page",
        answers={200: Content(("text/html",)), 302: None},
        description="Who has not signed in is sent to do so.",
    )
    def get(self, request: Request) -> HttpResponse:
        page = import_module("agents.doors.openapi.page")
        docs = page.docs_page(document_for(request))
        response = render(request, "agents/api_docs.html", {"docs": docs})
        response.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
        return response

    def handle_exception(self, exc: Exception) -> HttpResponseBase | Response:  # type: ignore[override]
        if isinstance(exc, NotAuthenticated):
            return redirect_to_login(self.request.get_full_path())
        return super().handle_exception(exc)


def document_for(request: Request) -> dict[str, Any]:
    """Return the document with the address at which this request reached the API."""
    # Imported on the first request: drf-spectacular takes 0.1 s, which commands need not spend.
    document = import_module("agents.api.schema_document")
    found: dict[str, Any] = document.document_at(request.path.rpartition("/")[0])
    return found
