"""Pagination with cursors. A cursor is the position of the last row of a page, so new rows do not
shift pages.

It is opaque: the list's order and the position, as base64url. A forged cursor can only lead to
another part of the same list.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from rest_framework.response import Response

from agents.events.append import dump
from agents.events.read import ROWS_AT_ONCE
from agents.selectors.history import LOOKED_THROUGH
from agents.services.errors import InvalidRequest

Row = TypeVar("Row", bound=Model)
PAGE_BYTES = 2_000_000


def page_of(
    rows: QuerySet[Row],
    show: Callable[[Row], Any],
    *,
    by: str,
    limit: int,
    cursor: str | None = None,
    descending: bool = False,
    among: QuerySet[Row] | None = None,
    weight: Callable[[Row], int] | None = None,
) -> Response:
    """Return `{results, next_cursor}`: the `limit` rows after `cursor`, ordered by the column `by`.

    A page can have fewer than `limit` rows although there is a next page: see `among` and `weight`.
    `next_cursor` is null on the last page.

    Args:
        rows: The rows of the list.
        show: Returns the JSON of a row.
        by: A column that is never null. The primary key orders equal values.
        limit: The maximum number of rows.
        cursor: The `next_cursor` of the page before; None for the first page.
        descending: Whether the order is reversed.
        among: The list without its slow filters. A page examines at most `LOOKED_THROUGH` of these
            rows.
        weight: Returns the size of a row in bytes. A page with several rows has at most
            `PAGE_BYTES`.

    Raises:
        InvalidRequest: For a cursor of another list or order.
    """
    order = f"{'-' if descending else ''}{by}"
    ways = tuple(dict.fromkeys([order, "-pk" if descending else "pk"]))
    ordered = rows.order_by(*ways)
    shown = None if cursor is None else read_cursor(cursor, order, 2)
    last = None
    if shown is not None:
        ordered = _beyond(ordered, by, shown, descending)
    if among is not None:
        among = among.order_by(*ways)
        if shown is not None:
            among = _beyond(among, by, shown, descending)
        places = among.values_list(by, "pk")[LOOKED_THROUGH - 1 : LOOKED_THROUGH + 1]
        found = list(places)
        last = found[0] if len(found) == 2 else None
    if last is not None:
        ordered = _beyond(ordered, by, last, not descending, itself=True)
    page, more = _first_of(ordered, limit, weight)
    next_cursor = None
    if more:
        next_cursor = write_cursor(order, getattr(page[-1], by), page[-1].pk)
    elif last is not None:
        next_cursor = write_cursor(order, *last)
    return Response({"results": [show(row) for row in page], "next_cursor": next_cursor})


def _first_of(
    rows: QuerySet[Row], limit: int, weight: Callable[[Row], int] | None
) -> tuple[list[Row], bool]:
    """Return the first rows, and whether there are more."""
    if weight is None:
        page = list(rows[: limit + 1])
        return page[:limit], len(page) > limit
    page, size = [], 0
    for row in rows[: limit + 1].iterator(chunk_size=ROWS_AT_ONCE):
        size += weight(row)
        if len(page) == limit or (page and size > PAGE_BYTES):
            return page, True
        page.append(row)
    return page, False


def _beyond(
    rows: QuerySet[Row], by: str, place: Sequence[Any], descending: bool, *, itself: bool = False
) -> QuerySet[Row]:
    """Return the rows after a position. Raises `InvalidRequest` for an impossible position."""
    value, key = place
    after = "lt" if descending else "gt"
    last = f"pk__{after}e" if itself else f"pk__{after}"
    beyond = Q(**{f"{by}__{after}": value}) | Q(**{by: value, last: key})
    if by in ("pk", rows.model._meta.pk.name):
        beyond = Q(**{last: key})
    try:
        return rows.filter(beyond)
    except (ValueError, TypeError, ValidationError):
        raise bad_cursor() from None


def ordered_page(
    rows: QuerySet[Row],
    show: Callable[[Row], Any],
    query: Mapping[str, Any],
    columns: Mapping[str, str],
    among: QuerySet[Row] | None = None,
    weight: Callable[[Row], int] | None = None,
) -> Response:
    """Return `page_of` for a query with `ordering`. `columns` maps the allowed names to columns."""
    name = query["ordering"].removeprefix("-")
    return page_of(
        rows,
        show,
        by=columns[name],
        descending=query["ordering"].startswith("-"),
        cursor=query.get("cursor"),
        limit=query["limit"],
        among=among,
        weight=weight,
    )


def write_cursor(order: str, *place: str | int) -> str:
    return base64.urlsafe_b64encode(dump([order, *place]).encode()).decode().rstrip("=")


def read_cursor(
    cursor: str, order: str, parts: int, kind: type[str | int] | None = None
) -> list[Any]:
    """Return the position in a cursor of `write_cursor`: `parts` values, all of `kind` if given.

    Raises `InvalidRequest`, also for a cursor of another `order`.
    """
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
    return InvalidRequest(
        "Invalid cursor for this list and ordering. Start again without a cursor."
    )
