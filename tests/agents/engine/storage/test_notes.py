"""Notes: messages from the engine to the model during a run, each a row of its turn."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError

from agents.engine.prompt.history import late_notes, open_turn, thread_history
from agents.engine.storage.notes import add_note, insert_note, note_json, write_note
from agents.events.catalogue.tool_calls import ToolDenied
from agents.features.guardrails.stuck import _is_told
from agents.models import Message, Run
from tests.agents.engine.by_hand import a_call, claimed, committed, new_run, reply_with

pytestmark = pytest.mark.django_db(transaction=True)


def rows(run: Run) -> list[tuple[int, int, str, str]]:
    found = Message.objects.filter(run=run).order_by("turn", "position")
    return list(found.values_list("turn", "position", "author", "role"))


@pytest.mark.both_databases
def test_a_turn_may_have_several_notes_and_the_model_reads_them_in_their_order() -> None:
    _, run = new_run()
    writer = claimed(run)
    committed(reply_with, writer, [])
    committed(
        write_note, writer, 1, note_json("First."), [ToolDenied(call_id="c", reason="No.")], "one"
    )
    committed(write_note, writer, 1, note_json("Second."), [], "two")
    assert rows(run) == [
        (0, 0, "person", "user"),
        (1, 0, "model", "assistant"),
        (1, 1, "one", "user"),
        (1, 2, "two", "user"),
    ]
    texts = [content for role, content in thread_history(run) if role == "user"]
    assert texts[1:] == [note_json("First."), note_json("Second.")]


def test_the_database_refuses_two_messages_in_one_place() -> None:
    _, run = new_run()
    committed(reply_with, claimed(run), [])
    with pytest.raises(IntegrityError):
        Message.objects.create(run=run, turn=1, position=0, role="user", content="[]")


def test_notes_of_an_open_turn_come_after_its_results(settings: Any) -> None:
    settings.VEL = {**settings.VEL, "HOST": "one"}
    _, run = new_run()
    writer = claimed(run)
    committed(reply_with, writer, [a_call(status="started", effect="read")])
    for text in ("First.", "Second."):
        committed(add_note, run, writer, text, "files")
    assert late_notes(run, open_turn(run)) == [note_json("First."), note_json("Second.")]
    assert [role for role, _ in thread_history(run)] == ["user", "assistant"]


def test_a_note_of_another_feature_is_not_a_note_about_a_stuck_run() -> None:
    _, run = new_run()
    writer = claimed(run)
    committed(reply_with, writer, [])
    committed(insert_note, writer, 1, note_json("Files were moved."), "files")
    assert not _is_told(run.pk, 1)
    committed(insert_note, writer, 1, note_json("You are stuck."), "stuck")
    assert _is_told(run.pk, 1)
