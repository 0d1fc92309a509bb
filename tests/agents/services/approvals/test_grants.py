"""Grants with the real engine: given, used, counted, ended."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.utils import timezone

from agents.middleware.decisions import decide
from agents.models import Agent, ApprovalGrant, ApprovalRequest, Run, ToolCall
from agents.selectors.visible import grants_for
from agents.services.agent_definitions.actions import save_agent
from agents.services.approvals.decisions import DecisionRequest
from agents.services.approvals.grants import GrantTerms, revoke_grant, use_grant
from agents.services.errors import Conflict, InvalidRequest, NotAllowed, NotFound
from tests.agents.api.test_idempotency import in_processes
from tests.agents.engine.by_hand import a_call, at_once, committed, new_run, start, with_calls
from tests.support.runs import (
    drive_to_end,
    events,
    make_agent,
    make_user,
    script_file,
    start_run,
)

pytestmark = pytest.mark.django_db(transaction=True)

ASKS = {"write_file": True}


def write(path: str = "/a", content: str = "alpha", **fields: Any) -> dict[str, Any]:
    return {"name": "write_file", "input": {"path": path, "content": content, **fields}}


def an_agent(
    tmp_path: Path, *calls: dict[str, Any], owner: User | None = None, **fields: Any
) -> Any:
    """Create an agent whose runs make these calls, one a turn."""
    owner = owner or make_user()
    turns = [*({"tool_calls": [call]} for call in calls), {"text": "Done."}]
    model = script_file(tmp_path, turns)
    return owner, make_agent(owner, model=model, **{"interrupt_on": ASKS, **fields})


def waits(run: Run) -> ApprovalRequest:
    """Drive the run until it waits for approval."""
    drive_to_end(run, until=("waiting", "completed", "failed"))
    return ApprovalRequest.objects.get(run=run, status="pending")


def runs_unasked(run: Run) -> bool:
    drive_to_end(run, until=("waiting", "completed", "failed"))
    return run.status == "completed"


def always(request: ApprovalRequest, by: User, **terms: Any) -> ApprovalGrant:
    decide(request.id, DecisionRequest("approve", always=GrantTerms(**terms)), by=by)
    return ApprovalGrant.objects.get(request=request)


def approver(name: str = "grace") -> User:
    user = make_user(name)
    user.user_permissions.add(Permission.objects.get(codename="approve_toolcall"))
    return User.objects.get(pk=user.pk)


def test_the_second_call_runs_without_asking_and_names_the_grant(tmp_path: Path) -> None:
    user, agent = an_agent(tmp_path, write(), write())
    run = start_run(user)
    grant = always(waits(run), user, reason="It is mine.")
    assert runs_unasked(run)
    first, second = ToolCall.objects.order_by("turn")
    assert (first.grant, second.grant) == (None, grant)
    assert [event.get("grant_id") for event in events(run, "tool.started")] == [None, grant.id]
    assert events(run, "approval.decided")[0]["grant_id"] == grant.id
    grant.refresh_from_db()
    assert (grant.uses, grant.agent, grant.owner, grant.thread) == (1, agent, user, None)
    assert grant.last_used_at is not None
    assert grant.reason == "It is mine."
    assert runs_unasked(start_run(user))
    grant.refresh_from_db()
    assert grant.uses == 3


@pytest.mark.parametrize("end", ["revoked", "expired", "used up", "its giver is gone"])
def test_when_it_has_ended_it_asks_again(tmp_path: Path, end: str) -> None:
    user, _ = an_agent(tmp_path, write())
    agents_approver = approver()
    run = start_run(user)
    grant = always(waits(run), agents_approver, max_uses=1)
    assert runs_unasked(run)
    rows = ApprovalGrant.objects.filter(pk=grant.pk)
    if end == "revoked":
        revoke_grant(grant.pk, by=agents_approver)
    elif end == "expired":
        rows.update(expires_at=timezone.now())
    elif end == "used up":
        assert runs_unasked(start_run(user))
    else:
        User.objects.filter(pk=agents_approver.pk).update(is_active=False)
    assert waits(start_run(user)).status == "pending"
    assert rows.get().uses == int(end == "used up")


@pytest.mark.parametrize("end", [{"revoked_at": True}, {"expires_at": True}, {"uses": 1}])
def test_a_grant_that_ends_between_finding_and_starting_starts_nothing(end: Any) -> None:
    user, run = new_run()
    call = a_call()
    writer = with_calls(run, call)
    grant = a_grant(run, user, max_uses=1)
    now = timezone.now()
    changed = {name: now if value is True else value for name, value in end.items()}
    ApprovalGrant.objects.filter(pk=grant.pk).update(**changed)
    assert not committed(start, writer, call, grant.id)
    row = ToolCall.objects.get(run=run)
    assert (row.status, row.grant) == ("pending", None)
    assert not events(run, "tool.started")


def test_a_grant_that_is_good_starts_the_call_once() -> None:
    user, run = new_run()
    call = a_call()
    writer = with_calls(run, call)
    grant = a_grant(run, user, max_uses=1)
    assert committed(start, writer, call, grant.id)
    assert ToolCall.objects.get(run=run).grant == grant
    assert not committed(use_grant, grant.id)


def a_grant(run: Run, by: User, **fields: Any) -> ApprovalGrant:
    values: dict[str, Any] = {
        "agent": run.agent_version.agent,
        "tool": "write_file",
        "owner": run.owner,
        "max_uses": 10,
        "expires_at": timezone.now() + timedelta(days=1),
        "created_by": by,
        **fields,
    }
    return ApprovalGrant.objects.create(**values)


def test_concurrent_threads_never_exceed_a_grant() -> None:
    user, run = new_run()
    grant = a_grant(run, user, max_uses=5)
    used = at_once(*[partial(committed, use_grant, grant.id)] * 12)
    assert used.count(True) == 5
    assert used.count(False) == 7
    grant.refresh_from_db()
    assert grant.uses == 5


@pytest.mark.both_databases
def test_concurrent_processes_never_exceed_a_grant() -> None:
    user, run = new_run()
    grant = a_grant(run, user, max_uses=30)
    counts = in_processes(lambda: sum(committed(use_grant, grant.id) for _ in range(20)), 3)
    assert sum(counts) == 30
    grant.refresh_from_db()
    assert grant.uses == 30


def test_a_denial_is_stronger_than_a_grant(tmp_path: Path) -> None:
    rule = {"tool": "write_file", "when": {"path": "/secret/**"}, "action": "deny"}
    user, _ = an_agent(tmp_path, write("/a"), write("/secret/x"), approval_rules=[rule])
    run = start_run(user)
    always(waits(run), user, match="tool")
    assert runs_unasked(run)
    assert [call.status for call in ToolCall.objects.order_by("turn")] == ["succeeded", "denied"]


def test_a_question_of_a_rule_is_answered_by_a_grant(tmp_path: Path) -> None:
    rule = {"tool": "write_file", "action": "ask", "reason": "Look."}
    user, _ = an_agent(tmp_path, write(), write(), approval_rules=[rule], interrupt_on={})
    run = start_run(user)
    always(waits(run), user)
    assert runs_unasked(run)


def test_it_covers_this_input_and_no_other(tmp_path: Path) -> None:
    user, _ = an_agent(tmp_path, write(content="a"), write(content="b"))
    run = start_run(user)
    always(waits(run), user)
    assert waits(run).input["content"] == "b"


def test_it_covers_these_paths_and_no_other(tmp_path: Path) -> None:
    user, _ = an_agent(tmp_path, write("/notes/a"), write("/notes/b/../c"), write("/notes/../d"))
    run = start_run(user)
    always(waits(run), user, match="path", pattern="/notes/**")
    assert waits(run).input["path"] == "/notes/../d"


def test_a_field_that_the_tool_ignores_is_not_covered(tmp_path: Path) -> None:
    user, _ = an_agent(tmp_path, write("/a"), write("/a", directory="/a"))
    run = start_run(user)
    always(waits(run), user, match="path", pattern="/a")
    assert "directory" in waits(run).input


def test_it_covers_the_owner_s_runs_of_this_agent_only(tmp_path: Path) -> None:
    user, _ = an_agent(tmp_path, write(), everyone=True)
    run = start_run(user)
    always(waits(run), user)
    assert runs_unasked(run)
    bob = make_user("bob")
    assert waits(start_run(bob))
    an_agent(tmp_path, write(), owner=user, slug="other")
    assert waits(start_run(user, agent="other"))


def test_only_approvers_give_grants_for_everybody(tmp_path: Path) -> None:
    user, _ = an_agent(tmp_path, write(), everyone=True)
    run = start_run(user)
    request = waits(run)
    with pytest.raises(NotAllowed, match="all users"):
        always(request, user, for_everybody=True)
    request.refresh_from_db()
    assert request.status == "pending"
    always(request, approver(), for_everybody=True)
    assert runs_unasked(run)
    assert runs_unasked(start_run(make_user("bob")))


def test_a_grant_of_one_thread_covers_no_other(tmp_path: Path) -> None:
    user, _ = an_agent(tmp_path, write())
    run = start_run(user)
    always(waits(run), user, thread_only=True)
    assert runs_unasked(run)
    assert runs_unasked(start_run(user, thread=run.thread_id))
    assert waits(start_run(user))


def test_with_two_approvers_grants_are_refused_and_ignored(tmp_path: Path) -> None:
    user, agent = an_agent(tmp_path, write())
    run = start_run(user)
    always(waits(run), user)
    assert runs_unasked(run)
    agent.approvals_needed = 2
    save_agent(agent)
    request = waits(start_run(user))
    for by in (user, approver()):
        with pytest.raises(InvalidRequest, match="require two approvers"):
            always(request, by)
    request.refresh_from_db()
    assert (request.status, request.first_approver) == ("pending", None)


def test_an_owners_grant_is_ignored_if_another_person_must_approve(
    tmp_path: Path,
) -> None:
    user, agent = an_agent(tmp_path, write())
    run = start_run(user)
    always(waits(run), user)
    assert runs_unasked(run)
    agent.self_approval = False
    save_agent(agent)
    run = start_run(user)
    request = waits(run)
    with pytest.raises(NotAllowed):
        always(request, user)
    always(request, approver())
    assert runs_unasked(run)
    assert runs_unasked(start_run(user))


def test_an_edit_of_the_memory_always_asks(tmp_path: Path) -> None:
    call = {"path": "knowledge/a.md", "content": "x", "reason": "said"}
    user, _ = an_agent(tmp_path, {"name": "write_memory", "input": call})
    request = waits(start_run(user))
    for match in ("input", "tool"):
        with pytest.raises(InvalidRequest, match="memory"):
            always(request, user, match=match)
    request.refresh_from_db()
    assert request.status == "pending"
    assert not ApprovalGrant.objects.exists()


@pytest.mark.parametrize(
    ("terms", "word"),
    [
        ({"days": 0}, "days"),
        ({"days": 91}, "days"),
        ({"max_uses": 0}, "max_uses"),
        ({"max_uses": 10_001}, "max_uses"),
        ({"pattern": "/a"}, "pattern"),
        ({"match": "tool", "pattern": "/a"}, "pattern"),
        ({"match": "command"}, "no command"),
        ({"match": "command", "pattern": ".*"}, "does not fit"),
        ({"match": "command", "pattern": "("}, "pattern"),
        ({"match": "path", "pattern": "/b/**"}, "does not fit"),
        ({"match": "path", "pattern": "/a/../**"}, "pattern"),
        ({"match": "path", "pattern": "/" + "a" * 1000}, "longer"),
        ({"match": "host"}, "match"),
    ],
)
def test_terms_that_do_not_fit_approve_nothing(
    tmp_path: Path, terms: dict[str, Any], word: str
) -> None:
    user, _ = an_agent(tmp_path, write())
    request = waits(start_run(user))
    with pytest.raises(InvalidRequest, match=word):
        always(request, user, **terms)
    request.refresh_from_db()
    assert request.status == "pending"
    assert not ApprovalGrant.objects.exists()


@pytest.mark.parametrize("decision", ["reject", "respond", "edit"])
def test_a_grant_goes_with_an_approval_only(tmp_path: Path, decision: str) -> None:
    user, _ = an_agent(tmp_path, write())
    request = waits(start_run(user))
    given = {"path": "/a", "content": "b"} if decision == "edit" else None
    answer = DecisionRequest(decision, input=given, reason="x", always=GrantTerms())
    with pytest.raises(InvalidRequest, match="always"):
        decide(request.id, answer, by=user)


def a_request(user: User, tool: str, given: dict[str, Any], effect: str) -> ApprovalRequest:
    """Create a pending request for a call whose tool does not exist in these tests."""
    run = start_run(user)
    request = waits(run)
    ToolCall.objects.filter(pk=request.tool_call_id).update(tool=tool, effect=effect)
    ApprovalRequest.objects.filter(pk=request.pk).update(tool=tool, input=given)
    request.refresh_from_db()
    return request


@pytest.mark.parametrize("pattern", ["", r"git\ status", "git (status|log)( [a-z-]+)*"])
def test_a_command_is_allowed_exactly_or_by_pattern(tmp_path: Path, pattern: str) -> None:
    user, _ = an_agent(tmp_path, write())
    request = a_request(user, "execute", {"command": "git status"}, "write")
    grant = always(request, user, match="command", pattern=pattern)
    assert grant.condition == {"command": pattern or r"git\ status"}


def test_a_pattern_for_a_command_with_operators_is_refused_the_exact_one_is_not(
    tmp_path: Path,
) -> None:
    user, _ = an_agent(tmp_path, write())
    request = a_request(user, "execute", {"command": "make; make test"}, "write")
    with pytest.raises(InvalidRequest, match="operators"):
        always(request, user, match="command", pattern="make.*")
    always(request, user, match="command")


@pytest.mark.parametrize(
    "terms",
    [
        {"match": "tool"},
        {"match": "command", "pattern": ".*"},
        {"match": "command", "pattern": "(?s).+"},
    ],
)
def test_everything_that_reaches_outside_is_for_approvers_to_allow(
    tmp_path: Path, terms: dict[str, Any]
) -> None:
    user, _ = an_agent(tmp_path, write())
    request = a_request(user, "execute", {"command": "git fetch"}, "external")
    with pytest.raises(NotAllowed, match="external effects"):
        always(request, user, **terms)
    always(request, approver(), **terms)


def test_only_permitted_people_see_and_revoke_grants(tmp_path: Path) -> None:
    agents_owner, agent = an_agent(tmp_path, write(), everyone=True)
    group = Group.objects.create(name="reviewers")
    agent.approver_groups.add(group)
    member, bob, eve = make_user("member"), make_user("bob"), make_user("eve")
    member.groups.add(group)
    run = start_run(bob)
    grant = always(waits(run), approver())
    assert list(grants_for(bob)) == [grant]
    assert not grants_for(eve).exists()
    with pytest.raises(NotFound):
        revoke_grant(grant.pk, by=eve)
    with pytest.raises(NotAllowed):
        revoke_grant(grant.pk, by=bob)  # it covers his runs, but he did not give it
    for user in (agents_owner, member):
        revoke_grant(grant.pk, by=user)
        grant.refresh_from_db()
        assert grant.revoked_by == user
        with pytest.raises(Conflict):
            revoke_grant(grant.pk, by=user)
        ApprovalGrant.objects.filter(pk=grant.pk).update(revoked_at=None, revoked_by=None)


def test_of_two_concurrent_revocations_one_takes_effect() -> None:
    user, run = new_run()
    grant = a_grant(run, user)
    results = at_once(*[partial(revoke_grant, grant.pk, by=user)] * 2)
    assert sum(isinstance(result, Conflict) for result in results) == 1
    assert Agent.objects.count() == 1
