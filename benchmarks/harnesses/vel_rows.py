"""The rows that the benchmarks need in Vel's database. Import it after `django.setup()`."""

from __future__ import annotations

import json

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import connection, transaction
from protocol import NOTES

from agents.features.planning.todo_list import Plan, TodoItem, checked
from agents.features.planning.todos import store_plan
from agents.models import Agent
from agents.services.agent_definitions.actions import save_agent

AGENT = "reader"
ASKING_AGENT = "asker"
"""The same agent, but each call of its tool requires approval."""
TOOL = "read_todos"


def make_site() -> User:
    """Create a user and two agents with a tool that reads rows of the database."""
    user = get_user_model().objects.create_superuser("bench")
    common = {"provider": "anthropic", "sandbox": False, "max_turns": 100_000, "owner": user}
    save_agent(Agent(name="Reader", slug=AGENT, **common))
    save_agent(Agent(name="Asker", slug=ASKING_AGENT, interrupt_on={TOOL: True}, **common))
    return user


def write_notes(thread_id: str) -> None:
    """Store the two items that `read_todos` returns. They are about as long as `NOTES`."""
    words = json.loads(NOTES)["todos"][:2]
    with transaction.atomic():
        store_plan(thread_id, checked(Plan([TodoItem(content=word) for word in words])))


def database_bytes() -> int:
    """Return the size of the database. For SQLite, write its log into the file first."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT pg_database_size(current_database())")
            return int(cursor.fetchone()[0])
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        cursor.execute("PRAGMA page_count")
        pages = cursor.fetchone()[0]
        cursor.execute("PRAGMA page_size")
        return int(pages * cursor.fetchone()[0])
