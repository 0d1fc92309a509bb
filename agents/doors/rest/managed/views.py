"""The endpoints of a `Managed`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.urls import URLPattern, path
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.doors.rest.base import ApiView
from agents.doors.rest.idempotency import idempotent
from agents.doors.rest.managed.admin_rows import AdminRows, entity_tag
from agents.doors.rest.managed.objects import Action, Managed
from agents.doors.rest.operations import ETAG, IDEMPOTENCY_KEY, IF_MATCH, LOCATION, Page, operation
from agents.doors.rest.pagination import page_of
from agents.doors.rest.serializers import StrictSerializer, read_body, read_query
from agents.models import TokenScope


def endpoints(
    managed: Managed,
    *,
    rows: type[ApiView] | None = None,
    row: type[ApiView] | None = None,
) -> list[URLPattern]:
    """Return the URL patterns of the objects.

    `rows` and `row` are views of the feature with additional methods. The others complete them.
    """
    one, name = f"{managed.rows}/<managed_id:key>", managed.name.replace("_", "-")
    patterns = [
        path(managed.rows, _rows_view(managed, rows).as_view(), name=managed.rows),
        path(one, _row_view(managed, row).as_view(), name=name),
    ]
    for action in managed.actions:
        view = _action_view(managed, action)
        patterns.append(path(f"{one}/{action.name}", view.as_view(), name=f"{name}-{action.name}"))
    return patterns


def _rows_view(managed: Managed, base: type[ApiView] | None) -> type[ApiView]:
    methods: dict[str, Any] = {}
    if base is None or not hasattr(base, "get"):

        @operation(
            f"list_{managed.plural}",
            f"List {managed.plural.replace('_', ' ')}",
            query=managed.query,
            answer=Page(managed.shape),
        )
        def get(self: ApiView, request: Request) -> Response:
            query = read_query(managed.query, request)
            door = AdminRows(managed, request)
            found = door.visible().filter(managed.condition(query))
            if query.get("q"):
                found = door.searched(query["q"], found)
            return page_of(
                found,
                door.show,
                by="pk",
                descending=managed.newest_first,
                cursor=query.get("cursor"),
                limit=query["limit"],
            )

        methods["get"] = get
    if managed.creates:

        @operation(
            f"create_{managed.name}",
            f"Make a {managed.name.replace('_', ' ')}",
            body=managed.new_body,
            answers={201: managed.saved_shape},
            errors=(409,),
            headers=(*((IDEMPOTENCY_KEY,) if managed.accepts_key else ()), LOCATION, ETAG),
        )
        def post(self: ApiView, request: Request) -> Response:
            read_query(StrictSerializer, request)
            door = AdminRows(managed, request)
            made, once = door.create(read_body(managed.new_body, request))
            found = managed.model._default_manager.get(pk=made.pk)
            answer = _answer(door, found, once, status=201)
            answer["Location"] = f"{request.path}/{made.pk}"
            return answer

        methods["post"] = idempotent(post) if managed.accepts_key else post
    return _view(f"{managed.camel}Rows", base, methods, managed)


def _row_view(managed: Managed, base: type[ApiView] | None) -> type[ApiView]:
    methods: dict[str, Any] = {}
    words = managed.name.replace("_", " ")
    if base is None or not hasattr(base, "get"):

        @operation(
            f"get_{managed.name}", f"Read a {words}", answer=managed.shown_shape, headers=(ETAG,)
        )
        def get(self: ApiView, request: Request, key: str) -> Response:
            door = AdminRows(managed, request)
            return _answer(door, door.find(key))

        methods["get"] = get
    if managed.changes:

        @operation(
            f"change_{managed.name}",
            f"Change a {words}",
            body=managed.change_body,
            answer=managed.saved_shape,
            errors=(409, 412),
            headers=(IF_MATCH, ETAG),
        )
        def patch(self: ApiView, request: Request, key: str) -> Response:
            read_query(StrictSerializer, request)
            door = AdminRows(managed, request)
            body = read_body(managed.change_body, request)
            return _answer(door, *door.change(key, body, _if_match(request)))

        methods["patch"] = patch
    if managed.deletes:

        @operation(
            f"delete_{managed.name}",
            f"Delete a {words}",
            answers={204: None},
            errors=(409, 412),
            headers=(IF_MATCH,),
        )
        def delete(self: ApiView, request: Request, key: str) -> Response:
            AdminRows(managed, request).delete(key, _if_match(request))
            return Response(status=204)

        methods["delete"] = delete
    return _view(f"One{managed.camel}", base, methods, managed)


def _action_view(managed: Managed, action: Action) -> type[ApiView]:
    @operation(
        f"{action.name.replace('-', '_')}_{managed.name}",
        action.summary,
        answer=action.answer or managed.shown_shape,
        errors=(400, 409),
    )
    def post(self: ApiView, request: Request, key: str) -> Response:
        read_query(StrictSerializer, request)
        door = AdminRows(managed, request)
        row, extra = door.act(key, action)
        if action.answer is not None:
            return Response(dict(action.answer(extra).data))
        return _answer(door, door.find(row.pk))

    return _view(
        f"{managed.camel}{action.name.title().replace('-', '')}", None, {"post": post}, managed
    )


def _view(
    name: str, base: type[ApiView] | None, methods: dict[str, Any], managed: Managed
) -> type[ApiView]:
    scopes = {
        method.upper(): TokenScope.READ if method == "get" else managed.scope for method in methods
    }
    has = getattr(base, "scopes", {})
    kinds = (base or ApiView,)
    return type(name, kinds, {**methods, "scopes": {**has, **scopes}, "managed": managed})


def _answer(
    door: AdminRows, row: Any, once: Mapping[str, Any] | None = None, *, status: int = 200
) -> Response:
    headers = {"ETag": entity_tag(door.managed, row)}
    return Response(door.answer(row, once), status=status, headers=headers)


def _if_match(request: Request) -> str:
    return str(request.headers.get("If-Match", ""))


class SecretShape(serializers.Serializer[Any]):
    """A new secret. It is shown this once."""

    secret = serializers.CharField()
