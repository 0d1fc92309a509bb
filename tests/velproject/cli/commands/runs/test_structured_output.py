"""`vel --output-schema` and `vel --context`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.velproject.command import Vel, say

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}}}
ECHO = ["--provider", "scripted", "--model", "echo"]


def schema_file(vel: Vel, text: str = json.dumps({**SCHEMA, "required": ["n"]})) -> list[str]:
    path = vel.data / "schema.json"
    path.write_text(text)
    return ["--output-schema", str(path)]


@pytest.mark.slow
def test_only_the_value_goes_to_standard_output(vel: Vel) -> None:
    answer = '```json\n{"n": 3, "s": "ü\u202e"}\n```'
    flags = vel.script(say("Looking.", ("ls", {"path": "."})), say(answer))
    done = vel(*flags, *schema_file(vel), "count")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"n": 3, "s": "ü\u202e"}
    assert "\u202e" not in done.stdout + done.stderr
    assert "ü" in done.stdout
    assert "Looking." in done.stderr


@pytest.mark.slow
def test_as_json_the_value_is_in_the_last_event(vel: Vel) -> None:
    done = vel(*vel.script(say('{"n": 3}')), *schema_file(vel), "--json", "count")
    assert done.returncode == 0, done.stderr
    last = json.loads(done.stdout.splitlines()[-1])
    assert (last["type"], last["data"]["structured_output"]) == ("run.completed", {"n": 3})


@pytest.mark.slow
def test_answers_that_do_not_fit_are_reported_and_fail_the_run(vel: Vel) -> None:
    done = vel(*vel.script(say('{"n": "x"}')), *schema_file(vel), "count")
    assert done.returncode == 1
    assert done.stdout == ""
    assert (
        '✗ the answer does not match its schema: $.n: must be of type integer, got "x"'
        in done.stderr
    )
    assert "Failed (output_invalid): 3 answers did not fit" in done.stderr


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "is not valid JSON"),
        ("[]", "expected a JSON object"),
        ('{"type": "x"}', "$.type must be one of"),
    ],
)
def test_an_invalid_schema_is_refused_before_the_run(vel: Vel, text: str, told: str) -> None:
    done = vel(*ECHO, *schema_file(vel, text), "count")
    assert done.returncode == 2, done.stderr
    assert told in done.stderr
    assert vel.rows("runs", "list") == []


def test_a_schema_that_is_not_there(vel: Vel, tmp_path: Path) -> None:
    done = vel(*ECHO, "--output-schema", str(tmp_path / "none.json"), "count")
    assert done.returncode == 2
    assert "cannot be read: No such file" in done.stderr


@pytest.mark.slow
def test_a_context_is_fixed_for_a_session(vel: Vel) -> None:
    first = vel(*ECHO, "--session", "s", "--context", "customer=Acme=1", "hello")
    assert first.returncode == 0, first.stderr
    again = vel(*ECHO, "--session", "s", "--context", "customer=Acme=1", "hello")
    assert again.returncode == 0, again.stderr
    other = vel(*ECHO, "--session", "s", "--context", "customer=Other", "hello")
    assert other.returncode != 0
    assert "started with other values (customer)" in other.stderr


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--context", "customer"], "expected NAME=VALUE"),
        (["--context", "=x"], "expected NAME=VALUE"),
        (["--context", "a=1", "--context", "a=2"], "a is given twice"),
        (["--context", "a-b=1"], "is not a valid name"),
    ],
)
def test_an_invalid_context_is_refused(vel: Vel, flags: list[str], told: str) -> None:
    done = vel(*ECHO, *flags, "hello")
    assert done.returncode == 2, done.stderr
    assert told in done.stderr
