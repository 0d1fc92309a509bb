"""Which statements look like writing. Nothing but convenience hangs on it."""

from __future__ import annotations

import pytest

from agents.databases.statement import looks_like_writing


@pytest.mark.parametrize(
    "query",
    [
        "INSERT INTO a VALUES (1)",
        " /* SELECT */ update a set b = 1",
        "-- SELECT\nDELETE FROM a",
        "MERGE INTO a USING b ON true WHEN MATCHED THEN DELETE",
        "REPLACE INTO a VALUES (1)",
        "WITH x AS (SELECT 1) DELETE FROM a",
        "WITH x AS (DELETE FROM a RETURNING *) SELECT * FROM x",
        "WITH x(y) AS MATERIALIZED (VALUES (1)) INSERT INTO a SELECT y FROM x",
    ],
)
def test_writing(query: str) -> None:
    assert looks_like_writing(query)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "SELECT 1",
        "(SELECT 1)",
        "VALUES ('DELETE')",
        "SELECT replace(a, 'b', 'c') FROM t",
        "WITH x AS (SELECT 'update' AS y) SELECT replace(y, 'a', 'b') FROM x",
        "WITH x AS (SELECT 1) SELECT * FROM t FOR UPDATE",
        'WITH x AS (SELECT "delete" FROM t) SELECT $$ insert $$ -- delete',
        "DROP TABLE a",
        "COMMIT",
    ],
)
def test_not_writing(query: str) -> None:
    assert not looks_like_writing(query)
