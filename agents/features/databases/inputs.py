"""The tools of databases, as a model sees them. The module needs no Django."""

from __future__ import annotations

from typing import Any, NamedTuple

from pydantic import AliasChoices, BaseModel, Field

from agents.features.databases.limits import MOST_SECONDS

_DATABASE = Field(default="default", validation_alias=AliasChoices("database", "connection"))
SECONDS = float(MOST_SECONDS)
"""The connection's own limit applies as well, and is usually shorter."""
QUERY_OR_WRITE = "Run one SELECT, or a write. params: values for :name in the query."


class ExecuteSqlInput(BaseModel):
    query: str = Field(min_length=1, validation_alias=AliasChoices("query", "sql"))
    database: str = _DATABASE
    params: dict[str, Any] | None = None


class DatabaseInput(BaseModel):
    database: str = _DATABASE


class DescribeTableInput(BaseModel):
    table: str = Field(min_length=1, validation_alias=AliasChoices("table", "table_name"))
    database: str = _DATABASE


class Form(NamedTuple):
    """A tool without its implementation."""

    name: str
    description: str
    input_model: type[BaseModel]


QUERY = Form(
    "execute_sql", "Run one SELECT. params: values for :name in the query.", ExecuteSqlInput
)
SCHEMA = Form("get_schema", "Show all tables with columns, types and keys.", DatabaseInput)
TABLES = Form("list_tables", "List tables and views.", DatabaseInput)
TABLE = Form("describe_table", "Show a table's columns, with defaults.", DescribeTableInput)
FORMS = (QUERY, SCHEMA, TABLES, TABLE)
