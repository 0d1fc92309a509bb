"""Databases: execute_sql, get_schema, list_tables and describe_table."""

from __future__ import annotations

from typing import Any

from agents.features.databases.inputs import (
    QUERY,
    QUERY_OR_WRITE,
    SCHEMA,
    SECONDS,
    TABLE,
    TABLES,
    ExecuteSqlInput,
    Form,
)
from agents.features.databases.options import DatabaseNames
from agents.kernel.lazy_modules import lazy_modules
from agents.middleware.base import Middleware, PromptContext, Tool
from agents.models import Effect
from agents.spec import AgentSpec

with lazy_modules:
    # The tools take 8 ms, which most agents do not have.
    from agents.features.databases.middleware import calls, text, writes

_NAMED = 30


class DatabaseMiddleware(Middleware):
    """A middleware with the four tools, for agents with an assigned connection."""

    name = "database"

    def tools(self, spec: AgentSpec) -> list[Tool[Any]]:
        return self._tools(spec) if spec.option(DatabaseNames).databases else []

    def every_tool(self) -> list[Tool[Any]]:
        return self._tools(None)

    def wanted_by(self, spec: AgentSpec) -> str:
        return "databases" if spec.option(DatabaseNames).databases else ""

    def _tools(self, spec: AgentSpec | None) -> list[Tool[Any]]:
        can_write = spec is not None and bool(writes.writable(spec))
        query = Tool(
            QUERY.name,
            QUERY_OR_WRITE if can_write else QUERY.description,
            ExecuteSqlInput,
            calls.run_execute_sql,
            Effect.READ,
            time_limit=SECONDS,
            variant=writes.writing_variant(spec) if spec is not None and can_write else None,
            leaves_machine=True,
        )
        others: list[tuple[Form, Any]] = [
            (SCHEMA, calls.run_get_schema),
            (TABLES, calls.run_list_tables),
            (TABLE, calls.run_describe_table),
        ]
        return [
            query,
            *(Tool(*form, run, Effect.READ, time_limit=SECONDS) for form, run in others),
        ]

    def prompt(self, context: PromptContext) -> str:
        if "execute_sql" not in context.tool_names:
            return ""
        spec = context.spec
        named = _named(spec)
        prompt = (
            f"## Databases\nYou can read: {named}. Look at get_schema first"
            f"{'' if all(_dialects(spec)) else ', which names the SQL dialect'}. "
            "Filter and aggregate in SQL; long results come as a CSV file."
        )
        if changed := writes.writable(spec):
            prompt += (
                f" You can write: {', '.join(changed[:_NAMED])}, by one INSERT, UPDATE or "
                "DELETE of few rows named by keys: a person is shown the rows that change, and "
                "decides."
            )
        return prompt


def _dialects(spec: AgentSpec) -> list[str]:
    """Return the dialects' names, in the order of the databases; empty if one is unknown."""
    names = spec.option(DatabaseNames)
    known = dict(zip(names.databases, names.database_dialects, strict=False))
    return [text.DIALECTS.get(known.get(name, ""), "") for name in names.databases]


def _named(spec: AgentSpec) -> str:
    """Return the databases as text. A common dialect is named once."""
    databases = spec.option(DatabaseNames).databases
    dialects, more = _dialects(spec), ", …" if len(databases) > _NAMED else ""
    names = databases[:_NAMED]
    if len(set(dialects)) == 1 and dialects[0]:
        return f"{', '.join(names)}{more} ({dialects[0]})"
    return (
        ", ".join(
            f"{name} ({dialect})" if dialect else name
            for name, dialect in zip(names, dialects, strict=False)
        )
        + more
    )


MIDDLEWARE = (DatabaseMiddleware(),)
