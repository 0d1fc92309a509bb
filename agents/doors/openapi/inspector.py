"""Translate the descriptions of `operations.operation` for drf-spectacular."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus
from typing import Any

from drf_spectacular.drainage import error
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.permissions import IsAuthenticated

from agents.doors.openapi.examples import problem_example
from agents.doors.rest.base import SESSION_ONLY
from agents.doors.rest.operations import (
    RETRY_AFTER,
    Answer,
    Content,
    OneOf,
    Operation,
    Page,
    Shape,
    operation_of,
)
from agents.doors.rest.problems import CONTENT_TYPE
from agents.doors.rest.serializers import Flag, JsonObject, StrictSerializer

MULTIPART = "multipart/form-data"
JSON = "application/json"


@cache
def page_shape(of: Shape) -> Shape:
    """Return the serializer `{results, next_cursor}` for this shape, cached."""
    return type(
        f"{component_name(of)}PageShape",
        (serializers.Serializer,),
        {
            "__doc__": "Part of a list. `next_cursor` leads to the next part, null on the last.",
            "results": of(many=True),
            "next_cursor": serializers.CharField(allow_null=True),
        },
    )


def component_name(shape: Shape) -> str:
    return "EmptyBody" if shape is StrictSerializer else shape.__name__.removesuffix("Shape")


def response_name(status: int) -> str:
    return HTTPStatus(status).phrase.replace(" ", "")


def problem_responses() -> dict[str, Any]:
    """Return the problem responses, as components that operations refer to."""
    shown = {}
    for status in (400, 401, 403, 404, 409, 411, 412, 413, 415, 429, 503, 507):
        content = {
            "schema": {"$ref": "#/components/schemas/Problem"},
            "example": problem_example(status),
        }
        response = {
            "description": HTTPStatus(status).phrase,
            "content": {CONTENT_TYPE: content},
        }
        if status in RETRY_AFTER.statuses:
            schema = {"schema": RETRY_AFTER.schema, "description": RETRY_AFTER.description}
            response["headers"] = {RETRY_AFTER.name: schema}
        shown[response_name(status)] = response
    return shown


class VelSchema(AutoSchema):
    """The schema of one operation."""

    @property
    def said(self) -> Operation:
        found = operation_of(self.view, self.method)
        if found is None:
            error(
                f"{self.method} {self.path} has no @operation: see agents/doors/rest/operations.py"
            )
            return Operation(f"{self.method}_{self.path}", "", {})
        return found

    def get_operation_id(self) -> str:
        return self.said.name

    def get_summary(self) -> str:
        return self.said.summary

    @property
    def scope(self) -> str:
        scopes: dict[str, str] = getattr(self.view, "scopes", {})
        return scopes.get(self.method, "")

    def get_description(self) -> str:  # type: ignore[override]  # as drf-spectacular has it
        scope = self.scope
        needs = "Only with a session." if scope == SESSION_ONLY else f"Scope: `{scope}`."
        return f"{self.said.description}\n\n{needs}".strip()

    def is_deprecated(self) -> bool:
        return self.said.deprecated

    def get_tags(self) -> list[str]:
        if tag := getattr(self.view, "tag", ""):
            return [tag]
        parts = [part for part in self.path.split("/") if part]
        # Resources of an agent with their own name are listed under that name.
        if parts[0] == "agents" and len(parts) > 2:
            own = parts[2].partition("-")[0]
            return [own if own in ("chat", "policy", "skills") else "agents"]
        return parts[:1]

    def get_auth(self) -> list[dict[str, list[str]]]:
        if IsAuthenticated not in self.view.permission_classes:
            return [{}]
        scope = self.scope
        return [{"session": []}] if scope == SESSION_ONLY else [{"token": [scope]}, {"session": []}]

    def get_override_parameters(self) -> list[Any]:
        said = self.said
        # drf-spectacular fails for a query without fields, so leave it out.
        query = [said.query] if said.query is not None and said.query().fields else []
        return [*query, *(self._header(header) for header in said.headers)]

    @staticmethod
    def _header(header: Any) -> OpenApiParameter:
        return OpenApiParameter(
            header.name,
            dict(header.schema),
            OpenApiParameter.HEADER,
            description=header.description,
            response=list(header.statuses) or False,
        )

    def get_request_serializer(self) -> Any:
        said = self.said
        bodies = {JSON: said.body, MULTIPART: said.form}
        return {kind: shape for kind, shape in bodies.items() if shape is not None} or None

    def get_response_serializers(self) -> Any:
        said = self.said
        found: dict[Any, Any] = {}
        for status, answer in said.answers.items():
            if not isinstance(answer, Content):
                found[status, JSON] = self._shown(answer)
                continue
            for media_type in answer.media_types:
                as_data = answer.data if media_type == JSON else None
                found[status, media_type] = self._shown(as_data or answer)
        return found

    def _get_response_bodies(self, direction: Any = "response") -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(direction)
        for status, body in bodies.items():
            body["description"] = body["description"] or HTTPStatus(int(status)).phrase
        self.resolve_serializer(ProblemShape(), "response")
        for refusal in sorted(self.said.refusals(in_path="{" in self.path)):
            bodies[str(refusal)] = {"$ref": f"#/components/responses/{response_name(refusal)}"}
        return bodies

    def _shown(self, answer: Answer) -> Any:
        if answer is None:
            return None
        if isinstance(answer, Content):
            return dict(answer.schema)
        if isinstance(answer, Page):
            return page_shape(answer.of)
        if isinstance(answer, OneOf):
            shapes = [*answer.kinds, *(page_shape(page.of) for page in answer.pages)]
            return {"oneOf": [self.resolve_serializer(each, "response").ref for each in shapes]}
        return answer

    def get_serializer_name(self, serializer: Any, direction: str) -> str:
        return component_name(type(serializer))

    def _map_serializer_field(
        self, field: Any, direction: str, bypass_extensions: bool = False
    ) -> Any:
        meta = self._get_serializer_field_meta(field, direction)
        if isinstance(field, Flag):
            return {"type": "boolean", **meta}
        if (own := getattr(field, "json_schema", None)) is not None:
            return {**own, **meta}
        if isinstance(field, JsonObject):
            null = meta.pop("nullable", False)
            kind = ["object", "null"] if null else "object"
            return {"type": kind, "additionalProperties": {}, **meta}
        if isinstance(field, serializers.JSONField):
            return {name: said for name, said in meta.items() if name != "nullable"}
        if isinstance(field, serializers.FileField):
            return {"type": "string", "format": "binary", **meta}
        shown = super()._map_serializer_field(field, direction, bypass_extensions)
        if isinstance(shown, dict):
            # The use of the serializer already shows that the field is only in responses.
            shown.pop("readOnly", None)
            if "enum" in shown and shown.get("default") not in shown["enum"]:
                shown.pop("default", None)  # such a default means that no value is set
        return shown

    def _get_serializer_field_meta(self, field: Any, direction: str) -> dict[str, Any]:
        meta: dict[str, Any] = super()._get_serializer_field_meta(field, direction)
        is_read = isinstance(getattr(field, "parent", None), StrictSerializer)
        if is_read and isinstance(field, serializers.CharField) and not field.allow_blank:
            meta["minLength"] = 1
        return meta

    def _map_basic_serializer(self, serializer: Any, direction: str) -> dict[str, Any]:
        shown: dict[str, Any] = super()._map_basic_serializer(serializer, direction)
        properties = shown.get("properties", {})
        if isinstance(serializer, StrictSerializer):
            shown["additionalProperties"] = False
        elif properties:
            optional = getattr(serializer, "optional", ())
            shown["required"] = sorted(set(properties) - set(optional))
        return shown


class VelSchemaGenerator(SchemaGenerator):
    """A generator that uses `VelSchema` and ignores the project's REST framework settings."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.coerce_path_pk = False

    def create_view(self, callback: Any, method: str, request: Any = None) -> Any:
        view = super().create_view(callback, method, request)
        self._set_schema_to_view(view, VelSchema())
        return view


class ProblemShape(serializers.Serializer[object]):
    """A problem. `code` is a stable word for programs, `detail` is a message for people."""

    optional = ("errors",)

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    code = serializers.CharField()
    # Serializers remove declared fields from the class, so this does not hide `Serializer.errors`.
    errors = serializers.DictField(  # type: ignore[assignment]
        child=serializers.ListField(child=serializers.CharField()), required=False
    )
