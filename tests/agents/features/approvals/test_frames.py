"""Decisions over the socket: bound to the shown content, by approvers, once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.agents.consumers.conftest import Client
from tests.support.site import Site

Open = Callable[..., Client]
INPUT = {"command": "ls"}


def asked(site: Site, owner: str = "olga") -> tuple[str, dict[str, str]]:
    """Create a waiting run; return it with the fields that every decision of its request needs."""
    run = site.do("make_run", owner=owner)
    request = site.do("ask", run=run, tool="execute", tool_input=INPUT)
    digest = site.do("approval", request=request)["digest"]
    return run, {"approval_id": request, "digest": digest}


def test_an_owner_approves_and_the_run_continues(site: Site, open_client: Open) -> None:
    run, request = asked(site)
    client = open_client(run)
    assert [frame["type"] for frame in client.take(3)][1] == "approval.requested"

    client.say("decide", **request, decision="approve")

    frames = {frame["type"]: frame for frame in client.take(3)}
    assert frames["accepted"]["approval_id"] == request["approval_id"]
    assert frames["approval.decided"]["data"]["by"] == "olga"
    assert "run.resumed" in frames
    assert site.do("approval", request=request["approval_id"])["decision"] == "approve"


@pytest.mark.parametrize(
    ("decision", "fields"),
    [
        ("edit", {"input": {"command": "ls -l"}}),
        ("reject", {"reason": "not now"}),
        ("respond", {"reason": "there is nothing in it"}),
    ],
)
def test_the_other_decisions_are_stored_with_their_content(
    site: Site, open_client: Open, decision: str, fields: dict[str, object]
) -> None:
    run, request = asked(site)

    answer = open_client(run).ask("decide", **request, decision=decision, **fields)

    assert answer["type"] == "accepted"
    stored = site.do("approval", request=request["approval_id"])
    assert stored["decision"] == decision
    assert stored["edited_input"] == fields.get("input")
    assert stored["reason"] == fields.get("reason", "")


def test_a_decision_on_something_else_than_was_shown_is_stale(
    site: Site, open_client: Open
) -> None:
    run, request = asked(site)

    answer = open_client(run).ask("decide", **{**request, "digest": "0" * 64}, decision="approve")

    assert answer["code"] == "stale"
    assert site.do("approval", request=request["approval_id"])["status"] == "pending"


def test_a_request_is_decided_once(site: Site, open_client: Open) -> None:
    run, request = asked(site)
    clients = [open_client(run), open_client(run, user="ada")]

    answers = [client.ask("decide", **request, decision="approve") for client in clients]

    assert [answer["type"] for answer in answers] == ["accepted", "error"]
    assert answers[1]["code"] == "stale"


def test_an_approver_only_watches_and_decides_runs_of_others(site: Site, open_client: Open) -> None:
    run, request = asked(site)
    client = open_client(run, user="ada")

    assert client.ask("cancel")["code"] == "not_allowed"
    assert client.ask("message", text="Hi")["code"] == "not_allowed"
    assert client.ask("decide", **request, decision="approve")["type"] == "accepted"
    assert site.do("approval", request=request["approval_id"])["by"] == "ada"


def test_a_socket_decides_only_requests_of_its_run(site: Site, open_client: Open) -> None:
    run, _ = asked(site)
    _, other = asked(site)

    answer = open_client(run).ask("decide", **other, decision="approve")

    assert answer["code"] == "not_found"
    assert site.do("approval", request=other["approval_id"])["status"] == "pending"


def test_an_approval_with_another_input_in_its_luggage_is_refused(
    site: Site, open_client: Open
) -> None:
    run, request = asked(site)

    answer = open_client(run).ask(
        "decide", **request, decision="approve", input={"command": "rm -rf /"}
    )

    assert answer["code"] == "bad_frame"
    assert site.do("approval", request=request["approval_id"])["status"] == "pending"
