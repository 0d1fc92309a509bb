"""The tools of a caller, and the contents of an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.features.mcp_server.caller import Caller
from agents.features.mcp_server.starts import McpCall, cancel_call, request_key, start_call
from agents.features.mcp_server.tools import (
    CANCEL_RUN,
    GET_RUN,
    TOOLS_PER_PAGE,
    agent_of,
    tool_name,
    tools_page,
)
from agents.features.mcp_server.waiting import answer_of, one_of_few, run_url, waits_for_person
from agents.models import Agent, Run
from agents.services.agent_definitions.actions import save_agent, set_active
from agents.services.errors import Conflict, NotFound
from agents.services.tokens import create_token
from agents.states import RunStatus
from tests.agents.api.rows import answer_run, ask_approval, make_agent, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> User:
    return make_user("ann")


def caller(user: User, *scopes: str) -> Caller:
    token, secret = create_token(user, scopes=scopes or ("mcp",))
    return Caller(user, token, secret)


def names(user: User) -> list[str]:
    tools, _ = tools_page(caller(user), None)
    return [tool["name"] for tool in tools][2:]


def begin(user: User, agent: str = "writer", **more: str) -> Run:
    return start_call(McpCall(agent=agent, message="Hello", **more), owner=user)


def test_an_agent_is_a_tool_when_it_is_offered_and_the_person_may_use_it(ann: User) -> None:
    bob = make_user("bob")
    agent = make_agent(mcp_tool=True, everyone=False, owner=bob)
    make_agent("other")
    assert (names(ann), names(bob)) == ([], ["writer"])
    with pytest.raises(NotFound):
        begin(ann)
    with pytest.raises(NotFound):
        begin(bob, "other")
    agent.everyone = True
    save_agent(agent)
    assert names(ann) == ["writer"]
    set_active(agent.pk, False, by=make_user("root", superuser=True))
    assert names(ann) == names(bob) == []


def test_a_withdrawn_agent_takes_no_calls_and_its_answers_stay(ann: User) -> None:
    agent = make_agent(mcp_tool=True)
    run = begin(ann)
    answer_run(run, "Written.")
    agent.mcp_tool = False
    save_agent(agent)
    assert agent_of("writer", caller(ann)) is None
    with pytest.raises(NotFound):
        begin(ann, thread=run.thread_id)
    run.refresh_from_db()
    assert answer_of(run)["structuredContent"]["answer"] == "Written."


def test_offering_an_agent_makes_no_new_version_of_it(ann: User) -> None:
    agent = make_agent()
    before = agent.version
    agent.mcp_tool = True
    assert save_agent(agent).version == before


def test_names_are_valid_for_clients_and_unique(ann: User) -> None:
    long = "a" * 100
    slugs = ["plain", GET_RUN, tool_name(GET_RUN), long, long[:-1] + "b", tool_name(long)]
    for slug in slugs:
        make_agent(slug, mcp_tool=True)
    found = names(ann)
    assert len(set(found)) == len(slugs)
    assert all(len(name) <= 64 for name in found)
    assert GET_RUN not in found
    for slug in slugs:
        agent = agent_of(tool_name(slug), caller(ann))
        # Even the agent whose slug is the tool name of another.
        assert agent is not None
        assert agent.slug == slug
    assert agent_of(GET_RUN, caller(ann)) is None
    assert agent_of(CANCEL_RUN, caller(ann)) is None


def test_many_tools_come_in_pages(ann: User) -> None:
    row = make_agent("a000", mcp_tool=True)
    for number in range(1, TOOLS_PER_PAGE + 3):
        Agent.objects.create(name="A", slug=f"a{number:03}", everyone=True, mcp_tool=True)
    first, cursor = tools_page(caller(ann), None)
    rest, end = tools_page(caller(ann), cursor)
    assert (len(first), len(rest), end) == (TOOLS_PER_PAGE + 2, 3, None)
    assert first[2]["name"] == row.slug
    assert not {tool["name"] for tool in first} & {tool["name"] for tool in rest}


def test_the_configuration_of_an_agent_is_not_revealed(ann: User) -> None:
    make_agent(mcp_tool=True, system_prompt="The secret {{context.code}}.", model="demo")
    told = json.dumps(tools_page(caller(ann), None)[0])
    assert "secret" not in told
    assert "scripted" not in told
    assert '"code"' in told  # the required variable of the prompt


def test_a_run_in_a_family_that_waits_for_a_person_waits_for_that_person(ann: User) -> None:
    make_agent(mcp_tool=True)
    run = begin(ann)
    assert waits_for_person(run) is None
    ask_approval(run)
    run.refresh_from_db()
    told = answer_of(run)
    assert told["structuredContent"]["waits_for"] == "approval"
    assert run_url(run) in told["content"][0]["text"]
    assert not told["isError"]
    child = Run.objects.create(
        thread=run.thread, number=2, parent=run, agent_version=run.agent_version, owner=ann
    )
    assert waits_for_person(run) is None  # the child is active
    Run.objects.filter(pk=child.pk).update(status=RunStatus.COMPLETED)
    assert waits_for_person(run) == "approval"


def test_an_answer_with_hidden_text_in_its_form_is_an_error(ann: User) -> None:
    words = {"type": "object", "properties": {"word": {"enum": ["yes", "y\u200bes"]}}}
    make_agent(mcp_tool=True, output_schema=words)
    run = begin(ann)
    answer_run(run, "…")
    Run.objects.filter(pk=run.pk).update(structured_output={"word": "y\u200bes"})
    run.refresh_from_db()
    told = answer_of(run)
    assert told["isError"]
    assert "output" not in told["structuredContent"]
    assert "\u200b" not in json.dumps(told, ensure_ascii=False)
    Run.objects.filter(pk=run.pk).update(structured_output={"word": "yes"})
    run.refresh_from_db()
    assert answer_of(run)["structuredContent"]["output"] == {"word": "yes"}


def test_failed_and_cancelled_runs_are_errors(ann: User) -> None:
    make_agent(mcp_tool=True)
    run = begin(ann)
    Run.objects.filter(pk=run.pk).update(
        status=RunStatus.FAILED, error_code="model_error", error_message="No\u202e answer."
    )
    run.refresh_from_db()
    told = answer_of(run)
    assert told["isError"]
    error = {"code": "model_error", "message": "No⟨U+202E⟩ answer."}
    assert told["structuredContent"]["error"] == error
    Run.objects.filter(pk=run.pk).update(status=RunStatus.CANCELLED)
    run.refresh_from_db()
    assert answer_of(run)["isError"]


def test_a_key_of_the_callers_and_the_requests_own_lead_to_one_run(ann: User) -> None:
    make_agent(mcp_tool=True)
    key = request_key(1, "session", 7)
    assert key != request_key(1, "session", "7")
    assert key not in (request_key(2, "session", 7), request_key(1, "sessions", 7))
    run = begin(ann, idempotency_key="mine", request_key=key)
    assert run.source == "mcp"
    assert begin(ann, idempotency_key="mine", request_key=key) == run
    assert begin(ann, idempotency_key="mine", request_key=request_key(1, "other", 1)) == run
    with pytest.raises(Conflict):
        start_call(McpCall("writer", "Else", idempotency_key="mine"), owner=ann)
    bob = make_user("bob")
    assert begin(bob, idempotency_key="mine") != run
    assert not cancel_call(key, owner=bob, reason="")
    assert not cancel_call(request_key(1, "session", 8), owner=ann, reason="")
    assert cancel_call(key, owner=ann, reason="taken back")
    run.refresh_from_db()
    assert run.status == RunStatus.CANCELLED
    assert not cancel_call(key, owner=ann, reason="again")


def test_a_person_has_few_calls_that_wait(ann: User, settings: Any) -> None:
    settings.VEL = {**settings.VEL, "STREAMS_PER_USER": 1}
    mine, also_mine, bobs = caller(ann), caller(ann), caller(make_user("bob"))
    with one_of_few(mine):
        with pytest.raises(Conflict, match="so no run was started"), one_of_few(also_mine):
            pass
        with one_of_few(bobs):
            pass
    with one_of_few(also_mine):
        pass
