"""Endpoints for a person's own API tokens. They require a session: tokens cannot manage tokens."""

from __future__ import annotations

from typing import ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.serializers.tokens import NewTokenShape, TokenBody, TokenShape
from agents.doors.rest.base import SESSION_ONLY, ApiView, person
from agents.doors.rest.operations import Page, operation
from agents.doors.rest.pagination import page_of
from agents.doors.rest.serializers import PageQuery, read_body, read_query
from agents.selectors.visible import tokens_for
from agents.services.tokens import create_own_token, revoke_own_token


class Tokens(ApiView):
    """The endpoints `GET /tokens` (newest first) and `POST /tokens`."""

    scopes: ClassVar = {"GET": SESSION_ONLY, "POST": SESSION_ONLY}

    @operation("list_tokens", "List your tokens", query=PageQuery, answer=Page(TokenShape))
    def get(self, request: Request) -> Response:
        query = read_query(PageQuery, request)
        return page_of(
            tokens_for(person(request)),
            TokenShape().to_representation,
            by="id",
            descending=True,
            cursor=query.get("cursor"),
            limit=query["limit"],
        )

    @operation(
        "create_token",
        "Create a token",
        body=TokenBody,
        answers={201: NewTokenShape},
        errors=(409,),
    )
    def post(self, request: Request) -> Response:
        token, secret = create_own_token(person(request), **read_body(TokenBody, request))
        return Response(NewTokenShape({"token": token, "secret": secret}).data, status=201)


class OneToken(ApiView):
    """The endpoint `DELETE /tokens/{id}` revokes a token of the user.

    It is idempotent and keeps the record.
    """

    scopes: ClassVar = {"DELETE": SESSION_ONLY}

    @operation("revoke_token", "Revoke a token", answers={204: None})
    def delete(self, request: Request, token_id: int) -> Response:
        revoke_own_token(token_id, by=person(request))
        return Response(status=204)
