"""The plan of a compaction, for given turns and a given room."""

from __future__ import annotations

from agents.engine.prompt.history import Said
from agents.events.append import dump
from agents.features.compaction.plan import Room, make_plan, summary_of_all

ROOM = Room(usable=10_000, fixed=0)


def a_turn(number: int) -> Said:
    blocks = [{"type": "text", "text": "word " * 800}]
    return Said((1, number), "run", [("assistant", dump(blocks))], [])


def test_an_earlier_summary_takes_its_part_of_the_room() -> None:
    turns = [a_turn(number) for number in range(8)]
    first = make_plan(turns, ROOM, opening=0)
    assert 0 < first.kept < len(turns)
    assert not first.summarizes
    assert make_plan(turns, ROOM, opening=100).clipped_tokens == first.clipped_tokens + 100
    assert make_plan(turns, ROOM, opening=ROOM.free).summarizes


def test_a_requested_summary_replaces_all_turns_of_a_short_conversation() -> None:
    turns = [a_turn(1)]
    assert not make_plan(turns, ROOM, opening=0).summarizes
    plan = summary_of_all(turns, ROOM, opening=0)
    assert plan.summarizes
    assert plan.kept == plan.kept_tokens == 0
    assert not summary_of_all([], ROOM, opening=0).summarizes
