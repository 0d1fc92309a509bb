"""Play the demo to its end in this process."""

from __future__ import annotations

import pytest

from agents.middleware.decisions import decide
from agents.models import ApprovalRequest, Run
from agents.providers.scripts import demo
from agents.services.approvals.decisions import DecisionRequest
from agents.services.demo import read_demo_outputs, start_demo_run
from tests.support.runs import make_user, running_worker, wait_for_status, wait_until


def play_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the script answer without the pauses for viewers."""
    monkeypatch.setattr(demo, "SECONDS_A_TURN", 0.0)


def play_demo(monkeypatch: pytest.MonkeyPatch) -> Run:
    play_at_once(monkeypatch)
    user = make_user()
    run = start_demo_run(user)
    with running_worker(executor=run.executor) as running:
        running.submit(run.id)
        wait_until(lambda: has_ended(run) or asked(run), "the report to be asked about")
        for request in asked(run):
            answer = DecisionRequest(decision="approve", digest=request.digest)
            decide(request.pk, answer, by=user)
        return wait_for_status(run, "completed", "failed", "cancelled")


_outputs: dict[str, bytes] = {}


def outputs_of_demo(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Return the files of a demo without its toolbox, played once for tests that only read them."""
    if not _outputs:
        run = play_demo(monkeypatch)
        assert run.status == "completed", run.error_message
        _outputs.update(read_demo_outputs(run))
    return dict(_outputs)


def has_ended(run: Run) -> bool:
    run.refresh_from_db()
    return run.has_ended


def asked(run: Run) -> list[ApprovalRequest]:
    return list(ApprovalRequest.objects.filter(run=run, status="pending"))
