"""Lists in pages. A cursor names the last row that was shown: rows that arrive shift none.

It is opaque: the list's order and the last row's place in it, as base64url. Who makes one up gets
another part of the same list, which is what `rows` may hold, and no more.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from rest_framework.response import Response

from agents.events.append import dump
from agents.services.errors import InvalidRequest

Row = TypeVar("Row", bound=Model)


def page_of(
    rows: QuerySet[Row],
    show: Callable[[Row], Any],
    *,
    by: str,
    limit: int,
    cursor: str | None = None,
    descending: bool = False,
) -> Response:
    """`{results, next_cursor}`: the `limit` rows after `cursor`, ordered by the column `by`.

    `by` is never null; what is equal in it is ordered by the primary key. `next_cursor` is null on
    the last page. Raises `InvalidRequest` for a cursor that is none of this list in this order.
    """
    order = f"{'-' if descending else ''}{by}"
    ordered = rows.order_by(*dict.fromkeys([order, "-pk" if descending else "pk"]))
    if cursor is not None:
        value, key = read_cursor(cursor, order, 2)
        after = "lt" if descending else "gt"
        place = Q(**{f"{by}__{after}": value}) | Q(**{by: value, f"pk__{after}": key})
        if by in ("pk", rows.model._meta.pk.name):
            place = Q(**{f"pk__{after}": key})
        try:
            ordered = ordered.filter(place)
        except (ValueError, TypeError, ValidationError):
            raise bad_cursor() from None
    found = list(ordered[: limit + 1])
    page = found[:limit]
    next_cursor = None
    if len(found) > limit:
        next_cursor = write_cursor(order, getattr(page[-1], by), page[-1].pk)
    return Response({"results": [show(row) for row in page], "next_cursor": next_cursor})


def ordered_page(
    rows: QuerySet[Row],
    show: Callable[[Row], Any],
    query: Mapping[str, Any],
    columns: Mapping[str, str],
) -> Response:
    """`page_of` for a query with `ordering`; `columns` are the columns of the names it may have."""
    name = query["ordering"].removeprefix("-")
    return page_of(
        rows,
        show,
        by=columns[name],
        descending=query["ordering"].startswith("-"),
        cursor=query.get("cursor"),
        limit=query["limit"],
    )


def write_cursor(order: str, *place: str | int) -> str:
    return base64.urlsafe_b64encode(dump([order, *place]).encode()).decode().rstrip("=")


def read_cursor(
    cursor: str, order: str, parts: int, kind: type[str | int] | None = None
) -> list[Any]:
    """The place that `write_cursor` was given, of `kind` if that is said. Raises
    `InvalidRequest`."""
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise bad_cursor() from None
    if not isinstance(found, list) or len(found) != parts + 1 or found[0] != order:
        raise bad_cursor()
    for part in found[1:]:
        if isinstance(part, bool) or not isinstance(part, kind or (str, int)):
            raise bad_cursor()
        if isinstance(part, str) and ("\x00" in part or not part.isprintable()):
            raise bad_cursor()
        if isinstance(part, int) and not -(2**63) <= part < 2**63:
            raise bad_cursor()
    return found[1:]


def bad_cursor() -> InvalidRequest:
    return InvalidRequest("The cursor is none that this list gave in this order: begin anew.")
