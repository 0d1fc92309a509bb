"""Detection of statements that write. It is only a convenience, not a guard."""

from __future__ import annotations

import time

import pytest

from agents.features.databases.drivers.statement import looks_like_writing


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


@pytest.mark.parametrize("end", ["/* DELETE FROM a", "$$ DELETE FROM a", "$x$ DELETE $y$"])
def test_an_unclosed_quote_reaches_to_the_end(end: str) -> None:
    assert not looks_like_writing(f"WITH x AS (SELECT 1) SELECT * FROM x {end}")


def test_a_quote_without_an_end_hides_nothing() -> None:
    assert looks_like_writing(r"WITH x AS (SELECT E'\'') DELETE FROM a")


def seconds(query: str) -> float:
    begun = time.process_time()
    looks_like_writing(query)
    return time.process_time() - begun


@pytest.mark.parametrize("piece", ["/* ", "$a{}$ ", "'''a", "'a'b", "`", "( ", "x "])
def test_time_is_linear(piece: str) -> None:
    """A million `/* ` once took hours: each search ran to the end of the text."""
    short, long = (
        "WITH " + "".join(piece.format(number) for number in range(count))
        for count in (4_000, 16_000)
    )
    assert min(seconds(long) for _ in range(3)) < 10 * min(seconds(short) for _ in range(3)) + 0.1
