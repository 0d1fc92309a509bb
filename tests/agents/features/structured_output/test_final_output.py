"""Final answers with an output schema: checked, repaired, and stored at the run's end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.engine import crash_points
from agents.engine.crash_points import CrashPoint
from agents.features.subagents.models import Subagent
from agents.models import Agent, Epoch, Message, Run
from agents.services.agent_definitions.actions import save_agent
from agents.services.errors import InvalidRequest
from agents.services.runs.control import resume_run
from tests.agents.engine.test_model_faults import served
from tests.agents.engine.test_recovery import crash_once
from tests.skills_app.runs.test_prompt import system_of
from tests.support.messages_api import MessagesServer
from tests.support.messages_script import Request, ToolUse, Turn, by_reply
from tests.support.runs import (
    drive_to_end,
    event_types,
    events,
    make_agent,
    make_user,
    script_file,
    start_run,
)

pytestmark = pytest.mark.django_db(transaction=True)

TOTAL: dict[str, Any] = {
    "type": "object",
    "properties": {"reasoning": {"type": "string"}, "n": {"type": "integer", "minimum": 1}},
    "required": ["n"],
}
GOOD = '{"reasoning": "counted", "n": 3}'


def texts_of(request: Request) -> list[str]:
    """Return the texts of the last message, which is the user's."""
    return [block["text"] for block in request.messages[-1]["content"] if block["type"] == "text"]


def agent(**fields: Any) -> Any:
    user = make_user()
    make_agent(user, provider="anthropic", model="claude-sonnet-5-5", **fields)
    return user


def test_an_answer_that_fits_is_the_runs_value() -> None:
    turns = [Turn(tool_uses=[ToolUse("ls", {"path": "/"})]), Turn(text=f"```json\n{GOOD}\n```")]
    with served(turns) as server:
        run = drive_to_end(start_run(agent(output_schema=TOTAL)))
    assert run.status == "completed", run.error_message
    assert run.structured_output == {"reasoning": "counted", "n": 3}
    assert events(run, "run.completed")[0]["structured_output"] == run.structured_output
    assert "output.invalid" not in event_types(run)
    assert server.violations == []
    systems = {system_of(request) for request in server.requests}
    assert len(systems) == 1
    # Every database keeps the author's order of names, which models follow.
    assert json.dumps(TOTAL, separators=(",", ":")) in systems.pop()


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ('{"n": 0}', "$.n: must have minimum 1, got 0"),
        ('{"m": 1}', "$: lacks n"),
        ("Three.", "The answer is not JSON: Expecting value at line 1, column 1."),
        ("```\n1\n```\n```\n2\n```", "several fenced blocks"),
    ],
)
def test_an_answer_that_does_not_fit_is_requested_again_with_the_reason(
    bad: str, told: str
) -> None:
    with served([Turn(text=bad), Turn(text=GOOD)]) as server:
        run = drive_to_end(start_run(agent(output_schema=TOTAL)))
    assert (run.status, run.structured_output) == ("completed", json.loads(GOOD))
    assert server.violations == []
    note = texts_of(server.requests[1])[0]
    assert told in note
    assert '"reasoning"' not in note  # the prompt has the schema
    (invalid,) = events(run, "output.invalid")
    assert invalid["attempt"] == 1
    assert told.endswith(invalid["problems"][0]["message"]) or told in str(invalid)
    assert server.requests[1].body.startswith(server.requests[0].body[:1000])


def test_a_cut_answer_is_requested_again() -> None:
    cut = Turn(text='{"n": 3, "reas', stop_reason="max_tokens")
    with served([cut, Turn(text=GOOD)]) as server:
        run = drive_to_end(start_run(agent(output_schema=TOTAL)))
    assert run.status == "completed"
    assert "cut off at the limit of output tokens" in texts_of(server.requests[1])[0]


def test_after_the_last_repair_the_run_fails_and_keeps_the_text() -> None:
    with served([Turn(text="One."), Turn(text="Two."), Turn(text="Three.")]) as server:
        run = drive_to_end(start_run(agent(output_schema=TOTAL)))
    assert (run.status, run.error_code) == ("failed", "output_invalid")
    assert run.error_message.startswith("3 answers did not fit")
    assert run.structured_output is None
    assert len(server.requests) == 3
    assert [event["attempt"] for event in events(run, "output.invalid")] == [1, 2, 3]
    assert Message.objects.get(run=run, role="assistant", turn=3).text == "Three."


@pytest.mark.slow
def test_a_resumed_run_gets_all_tries_again() -> None:
    with served([Turn(text="One."), Turn(text="Two."), Turn(text=GOOD)]) as server:
        run = drive_to_end(start_run(agent(output_schema=TOTAL, output_repairs=0)))
        assert run.status == "failed"
        run = drive_to_end(resume_run(run.pk))
        assert run.status == "failed"
        run = drive_to_end(resume_run(run.pk))
    assert (run.status, run.structured_output) == ("completed", json.loads(GOOD))
    assert server.violations == []  # a conversation ends with a user message, the note
    assert [event["attempt"] for event in events(run, "output.invalid")] == [1, 1]


def test_a_refusal_stays_a_refusal() -> None:
    with served([Turn(text="No.", stop_reason="refusal")]):
        run = drive_to_end(start_run(agent(output_schema=TOTAL)))
    assert (run.status, run.error_code) == ("failed", "refusal")
    assert "output.invalid" not in event_types(run)


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("point", "after"),
    [
        *((CrashPoint.REPLIED, after) for after in (0, 1, 2)),
        *((CrashPoint.REPLY_WRITTEN, after) for after in (0, 1)),
    ],
)
def test_a_crash_during_the_check_changes_nothing(point: CrashPoint, after: int) -> None:
    turns = [Turn(text="One."), Turn(text='{"n": 0}'), Turn(text=GOOD)]
    with served(by_reply(turns)) as server:  # type: ignore[arg-type]  # the server accepts both
        run = start_run(agent(output_schema=TOTAL))
        try:
            crash_once(run, point, after=after)
        finally:
            crash_points.crash_at(None)
        run = drive_to_end(run)
    assert server.violations == []
    assert len(server.requests) == 3 + (point == CrashPoint.REPLIED)
    assert (run.status, run.structured_output) == ("completed", json.loads(GOOD))
    assert [event["attempt"] for event in events(run, "output.invalid")] == [1, 2]
    assert Message.objects.filter(run=run, role="user", turn__gt=0).count() == 2


def test_the_note_is_the_same_for_the_next_driver() -> None:
    turns = [Turn(text='{"n": "ü"}'), Turn(text="{}"), Turn(text=GOOD)]
    with served(turns) as server:
        run = start_run(agent(output_schema=TOTAL))
        crash_once(run, CrashPoint.REPLY_WRITTEN, after=1)
        run = drive_to_end(run)
    assert run.status == "completed"
    assert len(server.requests) == 3
    second, third = (json.loads(request.body) for request in server.requests[1:])
    for message in second["messages"] + third["messages"]:
        for block in message["content"]:
            block.pop("cache_control", None)
    assert third["messages"][: len(second["messages"])] == second["messages"]


def test_a_form_for_one_message_is_sent_with_it() -> None:
    with served([Turn(text="{}"), Turn(text=GOOD), Turn(text="Words.")]) as server:
        user = agent()
        run = drive_to_end(start_run(user, output_schema=TOTAL))
        again = drive_to_end(start_run(user, thread=run.thread_id))
    assert run.structured_output == json.loads(GOOD)
    assert (again.status, again.structured_output) == ("completed", None)
    first, repaired, second = server.requests
    assert '"reasoning"' in texts_of(repaired)[0]
    assert '"reasoning"' not in system_of(first)
    assert system_of(first) == system_of(second)
    assert texts_of(first)[0] == "Hello"
    assert '{"type":"object","properties":{"reasoning"' in texts_of(first)[1]
    assert "structured_output" not in events(again, "run.completed")[0]
    assert Epoch.objects.count() == 1


def test_an_agent_with_a_form_takes_no_other() -> None:
    with pytest.raises(InvalidRequest, match="its own output schema"):
        start_run(agent(output_schema=TOTAL), output_schema={"type": "object"})
    assert not Run.objects.exists()


def test_a_run_without_a_form_has_no_trace_of_it(tmp_path: Any) -> None:
    user = make_user()
    make_agent(user, model=script_file(tmp_path, [{"text": "Words."}]))
    run = drive_to_end(start_run(user))
    assert run.status == "completed"
    assert not Message.objects.filter(run=run, turn__gt=0, role="user").exists()
    assert "output_format" not in Epoch.objects.get().head
    assert run.spec["output_schema"] == ""


NATIVE = {"claude-sonnet-5-5": {"capabilities": {"structured_outputs": {"supported": True}}}}


def test_a_capable_server_gets_the_form_in_every_request(settings: Any) -> None:
    looks = Turn(tool_uses=[ToolUse("ls", {"path": "/"})])
    with MessagesServer([looks, Turn(text="{}"), Turn(text=GOOD)], models=NATIVE) as server:
        settings.VEL = {**settings.VEL, "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": server.url}
        run = drive_to_end(start_run(agent(output_schema=TOTAL, effort="low")))
    assert (run.status, run.structured_output) == ("completed", json.loads(GOOD))
    assert server.violations == []
    assert "JSON Schema" not in system_of(server.requests[0])
    # The server does not enforce its schema: only the note contains it.
    assert '"reasoning":{"type":"string"}' in texts_of(server.requests[2])[0]
    for request in server.requests:
        config = request.json["output_config"]
        assert config["effort"] == "low"
        assert config["format"]["type"] == "json_schema"
        assert list(config["format"]["schema"]["properties"]) == ["reasoning", "n"]


@pytest.mark.slow
def test_a_subagent_answers_in_words_under_the_values_of_its_family() -> None:
    delegates = ToolUse("task", {"subagent": "clerk", "task": "Count them."})
    turns = [Turn(tool_uses=[delegates]), Turn(text="Three."), Turn(text=GOOD)]
    user = make_user(first_name="Ada")
    agent = Agent(name="Boss", slug="boss", owner=user, sandbox=False, builtin_skills=False)
    agent.provider, agent.model, agent.output_schema = "anthropic", "claude-sonnet-5-5", TOTAL
    clerk = Subagent(
        name="clerk",
        description="Counts.",
        system_prompt="{{agent.name}} asks {{context.who}} for {{user.first_name}}.",
    )
    save_agent(agent, related={"subagents": [clerk]})
    with served(turns) as server:
        with pytest.raises(InvalidRequest, match="missing: who"):
            start_run(user, agent="boss")
        run = drive_to_end(start_run(user, agent="boss", context={"who": "you"}))
    assert (run.status, run.structured_output) == ("completed", json.loads(GOOD)), run.error_message
    child = Run.objects.get(parent=run)
    assert (child.status, child.structured_output) == ("completed", None)
    told = system_of(server.requests[1])
    assert told.startswith("Boss asks you for Ada.\n")
    assert "JSON Schema" not in told
    assert "JSON Schema" in system_of(server.requests[2])
