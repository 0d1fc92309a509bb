"""Migrations of the memory: every edit keeps its approval request, in both directions."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from agents.models import ApprovalRequest
from memory.models import MemoryEditRequest
from tests.support import site_writer

BEFORE = [("agents", "0011_machine"), ("memory", "0001_initial")]


def migrate(targets: list[tuple[str, str]] | None = None) -> None:
    executor = MigrationExecutor(connection)
    executor.migrate(targets or executor.loader.graph.leaf_nodes())


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_edits_keep_their_approval_requests() -> None:
    site_writer.make_user("ada")
    run = site_writer.make_run("ada")
    row = ApprovalRequest.objects.get(pk=site_writer.ask_memory(run, "knowledge/a.md", "Beans."))
    edit = row.memory_edit
    alone = MemoryEditRequest.objects.create(agent=edit.agent, path="a", operation="write")
    try:
        migrate(BEFORE)
        with connection.cursor() as cursor:
            cursor.execute("SELECT id, memory_edit_id FROM agents_approvalrequest")
            assert cursor.fetchall() == [(row.pk, edit.pk)]
    finally:
        migrate()
    assert ApprovalRequest.objects.get().memory_edit == edit
    alone.refresh_from_db()
    assert alone.approval is None
    assert "memory_links_of_approvals" not in connection.introspection.table_names()
