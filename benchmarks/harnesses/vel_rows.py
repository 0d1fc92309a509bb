"""Rows that the benchmarks need on Vel's side. Import it after `django.setup()`."""

from __future__ import annotations

import json

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import connection, transaction
from protocol import NOTES

from agents.models import Agent
from agents.services.agent_definitions.actions import save_agent
from agents.services.runs.todos import TodoDraft, store_todos

AGENT = "reader"
ASKING_AGENT = "asker"
"""The same, but each call of its tool waits for a person."""
TOOL = "read_todos"


def make_site() -> User:
    """A user and the two agents. Their tool reads rows of the database."""
    user = get_user_model().objects.create_superuser("bench")
    common = {"provider": "anthropic", "sandbox": False, "max_turns": 100_000, "owner": user}
    save_agent(Agent(name="Reader", slug=AGENT, **common))
    save_agent(Agent(name="Asker", slug=ASKING_AGENT, interrupt_on={TOOL: True}, **common))
    return user


def write_notes(thread_id: str) -> None:
    """What `read_todos` will return: two items, about as long as `NOTES`."""
    words = json.loads(NOTES)["todos"][:2]
    with transaction.atomic():
        store_todos(thread_id, [TodoDraft(word) for word in words])


def database_bytes() -> int:
    """The database's size with all that was written moved into its file."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT pg_database_size(current_database())")
            return int(cursor.fetchone()[0])
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        cursor.execute("PRAGMA page_count")
        pages = cursor.fetchone()[0]
        cursor.execute("PRAGMA page_size")
        return int(pages * cursor.fetchone()[0])
