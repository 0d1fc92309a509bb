"""The trace of a run at a real collector, through parks, subagents and a killed worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.db import connection

from agents.features.subagents.models import Subagent
from agents.models import ApprovalRequest, EndedRun, Message, RemoteTrace, Run, RunClock
from agents.services.agent_definitions.actions import save_agent
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from agents.services.runs.control import cancel_run
from agents.telemetry.ids import parse_traceparent, trace_id_of
from agents.telemetry.process import forget_instruments
from tests.support.guards import registered, seen
from tests.support.otlp import Collector, Got, collector
from tests.support.runs import (
    drive_to_end,
    event_types,
    make_agent,
    make_user,
    running_worker,
    script_file,
    start_run,
    wait_for_status,
    wait_until,
)
from tests.support.site import ROOT

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with collector() as there:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", there.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2")
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
        forget_instruments()
        yield there
    forget_instruments()


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    yield
    forget_instruments()


def one(spans: list[Got], name: str, **attributes: Any) -> Got:
    [found] = [
        span
        for span in spans
        if span.name == name
        and all(
            span.attributes.get(key.replace("_", ".")) == value for key, value in attributes.items()
        )
    ]
    return found


def ended(run: Run) -> Any:
    return lambda spans: any(
        span.name.startswith("invoke_agent") and span.attributes["vel.run.id"] == run.pk
        for span in spans
    )


def write(path: str, content: str = "x") -> dict[str, Any]:
    return {"name": "write_file", "input": {"path": path, "content": content}}


_WORKER = """
import django; django.setup()
from agents.engine import worker
from agents.engine.process import sweeper
sweeper.QUEUE_SWEEP_SECONDS = 0.05
worker.Worker().start()
"""


def database_url() -> str:
    """Return the URL of this test's database."""
    name = str(connection.settings_dict["NAME"])
    server = os.environ.get("VEL_TEST_DATABASE_URL", "")
    return urlsplit(server)._replace(path=f"/{name}").geturl() if server else f"sqlite:///{name}"


def start_worker() -> subprocess.Popen[bytes]:
    """Start a process like a worker, on the test's database."""
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "velproject.settings",
        "DATABASE_URL": database_url(),
        "VEL_SCRIPTS_DIR": "/",
        "PYTHONPATH": str(ROOT),
    }
    # The engine watches the main thread, which must live while it drives.
    code = _WORKER + "import signal; signal.pause()"
    return subprocess.Popen([sys.executable, "-c", code], env=environment, cwd=ROOT)


def test_one_trace_holds_a_run_with_its_subagent_its_approval_and_a_killed_worker(
    tmp_path: Path, received: Collector
) -> None:
    user = make_user()
    turns = [
        {"tool_calls": [{"name": "task", "input": {"subagent": "echo", "task": "Count."}}]},
        {"tool_calls": [write("/a", "hidden words")]},
        {"text": "Done.", "delay": 2.0},
    ]
    model = script_file(tmp_path, turns)
    agent = make_agent(user, model=model, interrupt_on={"write_file": True})
    save_agent(
        agent, related={"subagents": [Subagent(name="echo", description="Says it.", model="echo")]}
    )
    header = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    run = start_run(user, "Do it secretly.", traceparent=header)
    worker = start_worker()
    try:
        wait_for_status(run, "waiting")
        wait_until(lambda: ApprovalRequest.objects.filter(run=run).exists())
        request = ApprovalRequest.objects.get(run=run)
        approve = DecisionRequest(decision="approve", digest=request.digest)
        decide_approval(request.id, approve, by=user)
        # The spans so far are exported, and the third model call is in progress.
        received.wait(lambda spans: any(span.name == "execute_tool write_file" for span in spans))
        wait_until(lambda: event_types(run).count("step.started") == 3)
    finally:
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    RunClock.objects.filter(run=run).update(lease_until=1.0)
    with running_worker(executor=run.executor) as second:
        second.submit(run.id)
        wait_for_status(run, "completed")
        spans = received.wait(ended(run))
    child = Run.objects.get(parent=run)
    spans = received.wait(ended(child))

    assert {span.trace for span in spans} == {"0af7651916cd43dd8448eb211c80319c"}
    whole = one(spans, "invoke_agent tester", vel_run_id=run.pk)
    assert whole.parent == "b7ad6b7169203331"
    assert not whole.failed
    assert whole.attributes["gen_ai.operation.name"] == "invoke_agent"
    assert whole.attributes["gen_ai.provider.name"] == "vel.scripted"
    assert whole.attributes["gen_ai.request.model"] == model
    assert whole.attributes["gen_ai.conversation.id"] == run.thread_id
    assert whole.attributes["gen_ai.usage.output_tokens"] > 0
    assert whole.attributes["vel.run.steps"] == 3

    task = one(spans, "execute_tool task")
    write_call = one(spans, "execute_tool write_file")
    wait = one(spans, "vel.approval")
    below = one(spans, "invoke_agent tester", vel_run_id=child.pk)
    assert (task.parent, write_call.parent, wait.parent) == (whole.id,) * 3
    assert below.parent == task.id
    assert task.start <= below.start <= below.end <= task.end
    assert wait.attributes["vel.approval.decision"] == "approve"
    assert wait.end <= write_call.start
    assert write_call.attributes["gen_ai.operation.name"] == "execute_tool"
    assert write_call.attributes["gen_ai.tool.type"] == "function"

    chats = [span for span in spans if span.name.startswith("chat") and span.parent == whole.id]
    # The third model call was made twice; the killed worker could not export the first.
    assert [span.attributes["vel.step"] for span in chats] == [1, 2, 3]
    assert chats[0].kind == 3  # CLIENT
    assert chats[0].attributes["gen_ai.response.finish_reasons"] == ["tool_use"]
    pids = {span.resource["process.pid"] for span in chats}
    assert pids == {worker.pid, os.getpid()}
    drives = [span for span in spans if span.name == "vel.drive" and span.parent == whole.id]
    assert [span.attributes["vel.run.recovered"] for span in drives][-1] is True
    assert len({span.id for span in spans}) == len(spans)
    known = {span.id for span in spans} | {whole.parent}
    assert {span.parent for span in spans} <= known, "a parent is missing"

    resource = whole.resource
    assert (resource["service.name"], resource["deployment.environment.name"]) == ("vel", "test")
    text = repr(spans)
    for said in ("secretly", "hidden words", "Count.", "Done."):
        assert said not in text
    wait_until(lambda: not EndedRun.objects.exists())


def test_traces_contain_messages_only_by_setting_and_never_keys(
    tmp_path: Path, received: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CAPTURE, "true")
    user = make_user()
    turns = [{"tool_calls": [write("/k", SECRET)]}, {"text": f"The key is {SECRET}."}]
    make_agent(user, model=script_file(tmp_path, turns))
    run = drive_to_end(start_run(user, f"Keep {SECRET} for me."))
    spans = received.wait(ended(run))
    whole = one(spans, "invoke_agent tester")
    assert "Keep [secret withheld] for" in whole.attributes["gen_ai.input.messages"]
    assert "The key is [secret withheld]" in whole.attributes["gen_ai.output.messages"]
    call = one(spans, "execute_tool write_file")
    assert '"path"' in call.attributes["gen_ai.tool.call.arguments"]
    assert SECRET not in repr(spans)


def test_a_failed_call_and_a_run_cancelled_while_waiting_are_traced(
    tmp_path: Path, received: Collector
) -> None:
    user = make_user()
    turns = [
        {"tool_calls": [{"name": "read_file", "input": {"path": "/none"}}]},
        {"tool_calls": [write("/a")]},
    ]
    make_agent(user, model=script_file(tmp_path, turns), interrupt_on={"write_file": True})
    run = drive_to_end(start_run(user), until=("waiting",))
    cancel_run(run.pk, by="ada")
    assert EndedRun.objects.filter(run=run).exists()
    with running_worker():
        spans = received.wait(ended(run))
    assert one(spans, "execute_tool read_file").failed
    assert one(spans, "execute_tool read_file").attributes["error.type"] == "file_error"
    whole = one(spans, "invoke_agent tester")
    assert whole.trace == f"{trace_id_of(run.pk):032x}"
    assert (whole.attributes["vel.run.status"], whole.parent) == ("cancelled", "")
    assert one(spans, "vel.approval").attributes["vel.approval.status"] == "cancelled"


def test_rows_without_a_valid_span_do_not_delay_an_end(
    tmp_path: Path, received: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CAPTURE, "true")
    user = make_user()
    turns = [{"tool_calls": [write("/a")]}]
    make_agent(user, model=script_file(tmp_path, turns), interrupt_on={"write_file": True})
    run = drive_to_end(start_run(user), until=("waiting",))
    Message.objects.filter(run=run, turn=0).update(content='[{"type": "text"}]')
    cancel_run(run.pk, by="ada")
    with registered(hooks=("Watch",)), running_worker():
        wait_until(lambda: not EndedRun.objects.exists())
        assert ("run_ended", run.pk, "cancelled", "") in seen


def test_a_failed_model_call_has_its_code_and_not_the_servers_text(
    tmp_path: Path, received: Collector
) -> None:
    user = make_user()
    make_agent(user, model="no-such-script")
    run = drive_to_end(start_run(user))
    assert run.status == "failed"
    whole = one(received.wait(ended(run)), "invoke_agent tester")
    assert whole.failed
    assert whole.attributes["error.type"] == "model_not_found"
    assert "gen_ai.response.finish_reasons" not in whole.attributes
    assert whole.message == ""


@pytest.mark.parametrize("trouble", ["refuses", "hangs", "is away"])
def test_a_collector_in_trouble_disturbs_no_run(
    tmp_path: Path, received: Collector, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "4")
    monkeypatch.setattr("agents.engine.process.watching.FLUSH_SECONDS", 0.1)
    if trouble == "refuses":
        received.status = 400
    elif trouble == "hangs":
        received.hold.set()
    else:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    user = make_user()
    calls = [{"name": "glob", "input": {"pattern": f"*.{number}"}} for number in range(20)]
    make_agent(user, model=script_file(tmp_path, [{"tool_calls": calls}, {"text": "Done."}]))
    counts: dict[str, int] = {}
    lock = threading.Lock()

    def count(outcome: str, number: int) -> None:
        with lock:
            counts[outcome] = counts.get(outcome, 0) + number

    from agents.telemetry import otlp, process

    made = otlp.SpanQueue(count)
    monkeypatch.setattr(process, "_made", [process.Instruments(made, None, False)])
    run = drive_to_end(start_run(user))
    assert run.status == "completed"
    if trouble == "refuses":
        wait_until(lambda: counts.get("export_failed", 0) + counts.get("queue_full", 0) >= 23)
    else:
        wait_until(lambda: counts.get("queue_full", 0) > 0)
    assert "exported" not in counts
    assert received.spans == []


def test_the_sampler_or_the_caller_can_prevent_a_trace(
    received: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = make_user()
    make_agent(user)
    quiet = start_run(user, traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-00")
    drive_to_end(quiet)
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    forget_instruments()
    drive_to_end(start_run(user))
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_on")
    forget_instruments()
    loud = drive_to_end(start_run(user))
    spans = received.wait(ended(loud))
    assert {span.attributes["vel.run.id"] for span in spans} == {loud.pk}


@pytest.mark.parametrize(
    "header",
    ["", "x", "00-" + "0" * 32 + "-" + "b" * 16 + "-01", "ff-" + "a" * 32 + "-" + "b" * 16 + "-01",
     "00-" + "A" * 32 + "-" + "b" * 16 + "-01", "00-" + "a" * 32 + "-" + "b" * 16 + "-01-x",
     "00-" + "a" * 32 + "-" + "b" * 16 + "-01\n", "00-" + "a" * 31 + "é-" + "b" * 16 + "-01"],
)  # fmt: skip
def test_an_invalid_traceparent_is_ignored(received: Collector, header: str) -> None:
    if header.endswith("\n"):
        assert parse_traceparent(header) is not None  # blanks around it are removed
        return
    assert parse_traceparent(header) is None
    user = make_user()
    make_agent(user)
    start_run(user, traceparent=header)
    assert not RemoteTrace.objects.exists()


@pytest.mark.slow
def test_without_an_endpoint_nothing_is_imported_and_nothing_written() -> None:
    code = (
        "import django; django.setup(); import sys, agents.tasks, velproject.urls;"
        "from agents.telemetry.process import instruments; assert instruments() is None;"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "[]"
    user = make_user()
    make_agent(user)
    header = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    drive_to_end(start_run(user, traceparent=header))
    assert not RemoteTrace.objects.exists()
    assert not EndedRun.objects.exists()
