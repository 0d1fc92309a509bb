"""`vel --session KEY` continues in the session's directory, or refuses another one."""

from __future__ import annotations

import os

import pytest

from tests.velproject.command import Vel, say

NOTE = say("", ("write_file", {"path": "note.txt", "content": "hi"}))


@pytest.mark.slow
def test_another_workspace_is_refused_before_a_model_is_asked(vel: Vel) -> None:
    places = [vel.data / name for name in ("A", "B")]
    for place in places:
        place.mkdir()
        if os.geteuid() == 0:
            os.chown(place, 65534, 65534)
    flags = vel.script(NOTE, say("Written."))
    begun = vel(*flags, "--workspace", "A", "--session", "main", "write a note")
    assert begun.returncode == 0, begun.stderr
    done = vel(*flags, "--workspace", "B", "--session", "main", "write a note")
    assert done.returncode == 2, done.stderr
    assert f"works in {places[0]}, not in {places[1]}" in done.stderr
    assert vel.count("agents_run") == 1
    assert not [*places[1].iterdir()]
    more = ("write_file", {"path": "more.txt", "content": "hi"})
    flags = vel.script(say("", more), say("Written."), name="more.json")
    assert vel(*flags, "--session", "main", "write more").returncode == 0
    assert (places[0] / "more.txt").exists()


@pytest.mark.slow
@pytest.mark.parametrize("first", [[], ["--no-sandbox"]])
def test_a_session_keeps_its_sandbox_or_stays_without(vel: Vel, first: list[str]) -> None:
    flags = vel.script(NOTE, say("Written."))
    begun = vel(*flags, *first, "--session", "main", "write a note")
    assert begun.returncode == 0, begun.stderr
    then = [] if first else ["--no-sandbox"]
    done = vel(*flags, *then, "--session", "main", "write a note")
    assert done.returncode == 2, done.stderr
    assert "Use another session id" in done.stderr
    assert vel.count("agents_run") == 1
