"""Lists in pages. A cursor is the last row's key: rows that arrive meanwhile shift none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from rest_framework.response import Response

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
    """`{results, next_cursor}`: the `limit` rows after `cursor`, ordered by the unique column `by`.

    `next_cursor` is null on the last page. Raises `InvalidRequest` for a cursor that is none.
    """
    if cursor is not None:
        try:
            rows = rows.filter(**{f"{by}__{'lt' if descending else 'gt'}": cursor})
        except ValueError:
            raise InvalidRequest("The cursor is none that this list gave.") from None
    found = list(rows.order_by(f"-{by}" if descending else by)[: limit + 1])
    page = found[:limit]
    next_cursor = getattr(page[-1], by) if len(found) > limit else None
    return Response({"results": [show(row) for row in page], "next_cursor": next_cursor})
