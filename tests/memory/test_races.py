"""Decisions about the memory at the same time, too late, from other users, and during crashes.

Each combination has one effect, or a refusal with a reason. Decisions come through HTTP.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import F

from agents.models import Agent, ApprovalRequest, Run, RunClock, RunEvent, ToolCall
from agents.services.agent_definitions.actions import save_agent
from agents.services.runs.control import cancel_run
from agents.services.tokens import create_token
from memory.actions.changes import write_file
from memory.limits import MAX_FILE_BYTES
from memory.models import MemoryFile, MemoryRevision
from tests.agents.api.rows import HttpResponse, client_with, make_agent, make_run, make_user, post
from tests.agents.engine.by_hand import at_once
from tests.support import site_writer
from tests.support.cluster import ROOT, database_url
from tests.support.hang import HANG
from tests.support.runs import drive_to_end, script_file, wait_for_status, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

PATH = "knowledge/notes.md"
ROUNDS = 5
Decide = Callable[..., HttpResponse]


@pytest.fixture
def ann() -> User:
    return make_user("ann")


@pytest.fixture
def eve() -> User:
    return make_user("eve", "approve_toolcall")


@pytest.fixture
def agent(ann: User) -> Agent:
    return make_agent(owner=ann)


def asked(owner: User, content: str = "agent's", operation: str = "write") -> ApprovalRequest:
    """Create a run of `owner` that waits, and return its request."""
    run = make_run(owner)
    made = site_writer.ask_memory(run.pk, PATH, content, operation)
    return ApprovalRequest.objects.select_related("run").get(pk=made)


def by(user: User) -> Decide:
    """Return a function that decides over HTTP as `user`."""
    secret = create_token(user, scopes=["read", "approve"])[1]

    def decide(request: ApprovalRequest, decision: str, **body: Any) -> HttpResponse:
        body = {"decision": decision, "digest": request.digest, **body}
        return post(client_with(secret), f"/api/v1/approvals/{request.pk}/decide", body)

    return decide


def codes(answers: list[Any]) -> list[int]:
    return sorted(answer.status_code for answer in answers)


def stored() -> str | None:
    return MemoryFile.objects.values_list("content", flat=True).filter(path=PATH).first()


def assert_one_effect(request: ApprovalRequest, revisions: int = 1) -> None:
    """Check for one revision, one confirmation, one result, and one event that resumes the run."""
    assert MemoryRevision.objects.count() == revisions
    of_run = RunEvent.objects.filter(run=request.run_id)
    for kind in ("approval.decided", "memory.changed", "tool.completed", "run.resumed"):
        assert of_run.filter(type=kind).count() == 1, kind
    assert ToolCall.objects.get(run=request.run_id).status == "succeeded"


def assert_nothing_happened(request: ApprovalRequest) -> None:
    request.refresh_from_db()
    assert (request.status, stored()) == ("pending", None)
    assert not MemoryRevision.objects.exists()
    assert Run.objects.get(pk=request.run_id).status == "waiting"


# Decisions at the same time ----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("second", ["approve", "edit", "reject"])
def test_of_two_concurrent_decisions_one_takes_effect(
    ann: User, eve: User, agent: Agent, second: str
) -> None:
    for number in range(ROUNDS):
        request = asked(ann, f"agent's {number}")
        edited = {"input": {"content": f"person's {number}"}} if second == "edit" else {}
        answers = at_once(
            lambda r=request: by(ann)(r, "approve"),
            lambda r=request, e=edited: by(eve)(r, second, **e),
        )
        assert codes(answers) == [200, 409]
        request.refresh_from_db()
        if request.decision == "reject":
            assert ToolCall.objects.get(run=request.run_id).status == "rejected"
            assert stored() != f"agent's {number}"
            continue
        made = MemoryRevision.objects.filter(edit_request=request.memory_edit)
        expected = f"{'agent' if request.decision == 'approve' else 'person'}'s {number}"
        assert [revision.content for revision in made] == [expected]


def test_of_many_concurrent_processes_one_decides(ann: User, agent: Agent) -> None:
    request = asked(ann)
    with Deciders(3, request, ann) as deciders:
        assert sorted(deciders.go()) == ["conflict stale"] * 2 + ["decided"]
    assert_one_effect(request)


@pytest.mark.slow
def test_of_two_concurrent_changes_of_a_file_one_is_stale(ann: User, agent: Agent) -> None:
    for number in range(ROUNDS):
        requests = [asked(ann, f"\n{name}{number}", "append") for name in "ab"]
        base = MemoryRevision.objects.count()
        answers = at_once(*(lambda r=r: by(ann)(r, "approve") for r in requests))
        assert codes(answers) == [200, 409]
        assert MemoryRevision.objects.count() == base + 1
        # The other edit is requested again for the current content, and fits.
        anew = ApprovalRequest.objects.select_related("run").get(status="pending")
        assert anew.run_id in {r.run_id for r in requests}
        assert by(ann)(anew, "approve").status_code == 200
        content = stored()
        assert content is not None
        assert all(content.count(f"{name}{number}") == 1 for name in "ab")


@pytest.mark.slow
def test_a_write_during_an_approval_is_not_lost(ann: User, agent: Agent) -> None:
    for number in range(ROUNDS):
        request = asked(ann, f"\nagent {number}", "append")
        base = MemoryRevision.objects.count()
        answers = at_once(
            lambda r=request: by(ann)(r, "approve"),
            lambda n=number, b=base: write_file(
                agent, PATH, f"person {n}", by=ann, base_revision=b, source="api"
            ),
        )
        status = answers[0].status_code
        wrote = isinstance(answers[1], int)
        assert (status, wrote) in ((200, False), (409, True)), answers
        if status == 409:
            anew = ApprovalRequest.objects.get(status="pending")
            assert by(ann)(anew, "approve").status_code == 200
            assert stored() == f"person {number}\n\nagent {number}"
        MemoryFile.objects.all().delete()
        MemoryRevision.objects.all().delete()


@pytest.mark.slow
def test_a_run_that_is_cancelled_while_it_is_approved(ann: User, agent: Agent) -> None:
    for _ in range(ROUNDS):
        before = MemoryRevision.objects.count()
        request = asked(ann, f"of {before}")
        answers = at_once(
            lambda r=request: by(ann)(r, "approve"),
            lambda r=request: cancel_run(r.run_id, by="ann"),
        )
        status = answers[0].status_code
        assert not isinstance(answers[1], Exception)
        assert Run.objects.get(pk=request.run_id).status == "cancelled"
        assert status in (200, 409)
        assert MemoryRevision.objects.count() == before + (status == 200)


# Late, oversized and unauthorised decisions ------------------------------------------------------


def test_an_approval_of_a_changed_file_asks_again(ann: User, agent: Agent) -> None:
    request = asked(ann)
    write_file(agent, PATH, "a person's", by=ann, source="web")
    answer = by(ann)(request, "approve")
    assert (answer.status_code, answer.json()["code"]) == (409, "stale")
    assert "asks again" in answer.json()["detail"]
    assert stored() == "a person's"
    anew = ApprovalRequest.objects.get(status="pending")
    assert anew.digest != request.digest
    assert by(ann)(anew, "approve", digest=request.digest).status_code == 409
    assert by(ann)(anew, "approve").status_code == 200
    assert stored() == "agent's"


def test_a_file_changed_and_changed_back_asks_again(ann: User, agent: Agent) -> None:
    write_file(agent, PATH, "same", by=ann, source="web")
    request = asked(ann)
    for content in ("other", "same"):
        write_file(agent, PATH, content, by=ann, source="web")
    assert by(ann)(request, "approve").status_code == 409
    assert stored() == "same"


def test_the_request_of_somebody_else_is_not_found(ann: User, agent: Agent) -> None:
    request = asked(ann)
    bob = by(make_user("bob"))
    for decision in ("approve", "reject"):
        assert bob(request, decision).status_code == 404
    assert bob(request, "edit", input={"content": "evil"}).status_code == 404
    assert_nothing_happened(request)


def test_a_user_of_a_shared_agent_cannot_approve_shared_memory(ann: User, agent: Agent) -> None:
    request = asked(make_user("bob"))
    bob = by(User.objects.get(username="bob"))
    assert bob(request, "approve").status_code == 403
    assert bob(request, "edit", input={"content": "evil"}).status_code == 403
    assert_nothing_happened(request)
    assert bob(request, "reject").status_code == 200


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    "content", ["x" * (MAX_FILE_BYTES + 1), "é" * (MAX_FILE_BYTES // 2 + 1), "x" * 1_000_000]
)
def test_an_edit_over_the_size_limit_is_refused_and_the_request_stays_pending(
    ann: User, agent: Agent, content: str
) -> None:
    request = asked(ann)
    assert by(ann)(request, "edit", input={"content": content}).status_code == 400
    assert_nothing_happened(request)
    assert by(ann)(request, "edit", input={"content": "x" * MAX_FILE_BYTES}).status_code == 200
    assert_one_effect(request)


@pytest.mark.slow_cases
@pytest.mark.parametrize("first", ["approve", "edit", "reject"])
def test_a_decision_that_is_sent_again_is_refused(ann: User, agent: Agent, first: str) -> None:
    request = asked(ann)
    fields = {"input": {"content": "person's"}} if first == "edit" else {}
    assert by(ann)(request, first, **fields).status_code == 200
    after = (stored(), MemoryRevision.objects.count())
    for again in ("approve", "reject"):
        assert by(ann)(request, again).status_code == 409
    assert by(ann)(request, "edit", input={"content": "evil"}).status_code == 409
    assert (stored(), MemoryRevision.objects.count()) == after


def test_a_decision_for_a_cancelled_run_is_refused(ann: User, agent: Agent) -> None:
    request = asked(ann)
    cancel_run(request.run_id, by="ann")
    for decision in ("approve", "reject"):
        assert by(ann)(request, decision).status_code == 409
    assert by(ann)(request, "edit", input={"content": "evil"}).status_code == 409
    assert (stored(), MemoryRevision.objects.count()) == (None, 0)


# Crashes -----------------------------------------------------------------------------------------


def test_a_worker_killed_between_decision_and_resume_makes_no_second_change(
    ann: User, agent: Agent, tmp_path: Path
) -> None:
    call = {"name": "write_memory", "input": {"path": PATH, "content": "kept", "reason": "said"}}
    agent.model = script_file(tmp_path, [{"tool_calls": [call]}, {"text": "Done."}])
    agent.sandbox = False
    save_agent(agent)
    run = make_run(ann)
    with process(DOOMED_WORKER, run.pk) as worker:
        wait_for_status(run, "waiting")
        request = ApprovalRequest.objects.get(run=run)
        assert by(ann)(request, "approve").status_code == 200
        # The worker takes the run up again, and dies immediately. It may do so before it is told.
        with suppress(BrokenPipeError):
            tell(worker, "go on")
        assert worker.wait(timeout=HANG) == -signal.SIGKILL
    run.refresh_from_db()
    assert (run.status, stored()) == ("running", "kept")
    RunClock.objects.filter(run=run).update(lease_until=F("lease_until") - 3600)
    assert drive_to_end(run).status == "completed"
    assert (stored(), MemoryRevision.objects.count()) == ("kept", 1)
    called = ToolCall.objects.get(run=run)
    assert (called.status, called.attempt) == ("succeeded", 0)
    for kind in ("memory.changed", "approval.decided", "tool.completed", "run.completed"):
        assert RunEvent.objects.filter(run=run, type=kind).count() == 1, kind


@pytest.mark.slow
def test_a_server_that_is_killed_within_a_decision_has_decided_nothing(
    ann: User, agent: Agent
) -> None:
    request = asked(ann)
    with process(DOOMED_SERVER, request.pk, ann.username) as server:
        assert server.wait(timeout=HANG) == -signal.SIGKILL
    wait_until(lambda: by(ann)(request, "approve").status_code == 200, "the lock's end")
    assert_one_effect(request)


_BEGIN = "import os, signal, sys; import django; django.setup()\n"

DOOMED_WORKER = f"""{_BEGIN}
from agents.engine.crash_points import CrashPoint, crash_at
from agents.engine.worker import Worker

claims = []

def die_at_the_second(point):
    if point == CrashPoint.CLAIMED:
        claims.append(point)
        if len(claims) == 2:
            os.kill(os.getpid(), signal.SIGKILL)

crash_at(die_at_the_second)
worker = Worker()
worker.start()
worker.submit(sys.argv[1])
for line in sys.stdin:
    worker.submit(sys.argv[1])
"""

_DECIDE = """
from django.contrib.auth.models import User
from agents.middleware.decisions import decide
from agents.services.approvals import decisions as approvals
from agents.services.errors import Conflict

ann = User.objects.get(username=sys.argv[2])
answer = approvals.DecisionRequest("approve")
"""

DOOMED_SERVER = f"""{_BEGIN}{_DECIDE}
# All rows are written, and nothing is committed.
approvals.wake_if_decided = lambda run: os.kill(os.getpid(), signal.SIGKILL)
decide(sys.argv[1], answer, by=ann)
"""

DECIDER = f"""{_BEGIN}{_DECIDE}
print("ready", flush=True)
sys.stdin.readline()
try:
    decide(sys.argv[1], answer, by=ann)
    print("decided", flush=True)
except Conflict as error:
    print("conflict", error.code, flush=True)
"""


@contextmanager
def process(program: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Start a process of the project on the test's database."""
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.chaos.settings",
        "DATABASE_URL": database_url(),
        "PYTHONPATH": str(ROOT),
    }
    running = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        env=environment,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield running
    finally:
        running.kill()
        running.communicate()


def tell(running: subprocess.Popen[str], line: str) -> None:
    assert running.stdin is not None
    print(line, file=running.stdin, flush=True)


class Deciders:
    """Processes that approve one request on command."""

    def __init__(self, count: int, request: ApprovalRequest, user: User) -> None:
        self._make = [process(DECIDER, request.pk, user.username) for _ in range(count)]

    def __enter__(self) -> Deciders:
        self._running = [made.__enter__() for made in self._make]
        for running in self._running:
            assert self._line(running) == "ready"
        return self

    def __exit__(self, *error: Any) -> None:
        for made in self._make:
            made.__exit__(*error)

    def go(self) -> list[str]:
        for running in self._running:
            tell(running, "go")
        return [self._line(running) for running in self._running]

    def _line(self, running: subprocess.Popen[str]) -> str:
        assert running.stdout is not None
        return running.stdout.readline().strip()
