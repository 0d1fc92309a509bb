"""Descriptions of endpoints, declared at their methods. The schema is generated from them.

    @operation("list_runs", "List runs", query=RunListQuery, answer=Page(RunShape))
    def get(self, request: Request) -> Response: ...

Common parts are added automatically: authentication, scopes, path parameters, and the problems of
requests with a body, a query or a path (`Operation.refusals`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rest_framework.serializers import Serializer

Shape = type[Serializer[Any]]
Method = TypeVar("Method", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Page:
    """A response `{results, next_cursor}` with rows of one shape."""

    of: Shape


@dataclass(frozen=True, slots=True)
class OneOf:
    """A response with a form that depends on the query."""

    kinds: tuple[Shape, ...]
    pages: tuple[Page, ...] = ()


@dataclass(frozen=True, slots=True)
class Content:
    """A response with its own media type: bytes, text, a stream, or data with a `schema`.

    `data` is the shape of `application/json`, if this is one of several media types.
    """

    media_types: tuple[str, ...] = ("application/octet-stream",)
    schema: Mapping[str, Any] = field(
        default_factory=lambda: {"type": "string", "format": "binary"}
    )
    data: Shape | None = None


@dataclass(frozen=True, slots=True)
class Header:
    """A header of the request (`statuses` is empty) or of responses with these statuses."""

    name: str
    description: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})
    statuses: tuple[int, ...] = ()


Answer = Shape | Page | OneOf | Content | None

IDEMPOTENCY_KEY = Header(
    "Idempotency-Key",
    "The same request with the same key is done once; the key is yours alone.",
    {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[ -~]+$"},
)
LOCATION = Header("Location", "Where the new one is.", {"type": "string"}, (201,))
IF_MATCH = Header(
    "If-Match",
    "The ETag that you have read: 412 if the object has changed since.",
    {"type": "string", "maxLength": 1000},
)
ETAG = Header("ETag", "Of the fields that a request can change.", {"type": "string"}, (200, 201))
RETRY_AFTER = Header("Retry-After", "Seconds to wait.", {"type": "string"}, (429, 503))


@dataclass(frozen=True, slots=True)
class Operation:
    """A method of an endpoint. `name` is the operation's name in generated clients."""

    name: str
    summary: str
    answers: Mapping[int, Answer]
    """By status. None means a response without a body."""
    query: Shape | None = None
    body: Shape | None = None
    form: Shape | None = None
    """The fields of a multipart form, instead of or in addition to a JSON `body`."""
    errors: tuple[int, ...] = ()
    """Statuses of additional problems."""
    headers: tuple[Header, ...] = ()
    description: str = ""
    deprecated: bool = False

    def refusals(self, *, in_path: bool) -> set[int]:
        """Return the statuses of all problems that the operation can return."""
        found = {401, 403, 411, 429, 503, 507, *self.errors}
        if in_path:
            found.add(404)
        if self.query is not None:
            found.add(400)
        if self.body is not None or self.form is not None:
            found |= {400, 413, 415}
        return found


def operation(
    name: str,
    summary: str,
    *,
    answer: Answer = None,
    answers: Mapping[int, Answer] | None = None,
    **more: Any,
) -> Callable[[Method], Method]:
    """Describe a method. `answer` is short for `answers={200: answer}`; `more` is for `Operation`.

    Does not change the method's behavior.
    """
    described = Operation(name, summary, answers or {200: answer}, **more)

    def describe(method: Method) -> Method:
        method.operation = described  # type: ignore[attr-defined]  # read by `operation_of`
        return method

    return describe


def operation_of(view: object, method: str) -> Operation | None:
    """Return the description of one of the view's HTTP methods."""
    found = getattr(getattr(view, method.lower(), None), "operation", None)
    return found if isinstance(found, Operation) else None
