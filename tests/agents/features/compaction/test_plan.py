"""The plan of a compaction, for given turns and a given room."""

from __future__ import annotations

from agents.engine.prompt.history import Said
from agents.events.append import dump
from agents.features.compaction.plan import Room, make_plan

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
