"""The hooks of middleware in the turn loop, on the real engine with a scripted model."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db.models import F

from agents.checks.features import check_features
from agents.engine.crash_points import CrashPoint
from agents.features.guardrails.events import GuardStuck
from agents.kernel import chain
from agents.kernel.middleware import (
    CommitAgain,
    Ending,
    LoadContext,
    ModelHandler,
    ModelRequest,
    Refusal,
    ReplyDecision,
    RunContext,
    Tell,
    ToolCallRequest,
    ToolHandler,
)
from agents.kernel.middleware import Middleware as KernelMiddleware
from agents.kernel.park import End, Locked, Park, Suspend
from agents.kernel.tool_calls import ToolResult
from agents.middleware.base import Middleware
from agents.models import Message, RequestCount, Run, RunClock, StateFile, ToolCall
from agents.providers.base import Reply, Usage
from agents.services.agent_definitions.actions import save_agent
from agents.services.runs.control import cancel_run
from tests.agents.engine.test_recovery import crash_once
from tests.agents.kernel.probe import middleware as probe
from tests.agents.kernel.probe.apps import ProbeConfig
from tests.support.hang import HANG
from tests.support.runs import (
    drive_to_end,
    event_types,
    events,
    make_agent,
    make_user,
    running_worker,
    script_file,
    start_run,
    wait_for_status,
    wait_until,
)

pytestmark = pytest.mark.django_db(transaction=True)

PLAN = {"tool_calls": [{"name": "write_todos", "input": {"todos": [{"content": "Think"}]}}]}
READ = {"tool_calls": [{"name": "read_todos", "input": {}}]}
WRITE = {"tool_calls": [{"name": "write_file", "input": {"path": "/a", "content": "x"}}]}
DONE = {"text": "Done."}
Install = Callable[..., None]


@pytest.fixture
def install(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Install:
    def install(*items: Middleware, order: dict[str, int] | None = None) -> None:
        """Install a feature with this middleware, one inside the other."""
        places = {item.name: number for number, item in enumerate(items, start=1)}
        monkeypatch.setattr(probe, "MIDDLEWARE", list(items))
        monkeypatch.setattr(ProbeConfig, "middleware_order", places if order is None else order)
        settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "tests.agents.kernel.probe"]

    return install


def play(tmp_path: Path, *turns: dict[str, Any]) -> Run:
    user = make_user()
    make_agent(user, model=script_file(tmp_path, list(turns)))
    return start_run(user)


def row(subject: str) -> Callable[[], None]:
    """A write that fails if it is made twice."""

    def write() -> None:
        RequestCount.objects.create(subject=subject, minute=0)

    return write


def rows() -> set[str]:
    return set(RequestCount.objects.values_list("subject", flat=True))


class Recorder(Middleware):
    """Implements all hooks, and records their arguments."""

    name = "recorder"

    def __init__(self) -> None:
        self.seen: list[str] = []

    def load(self, context: LoadContext) -> object:
        self.seen.append(f"load {context.turn}")
        return Counted(context.spec.slug)

    async def before_agent(self, run: RunContext) -> None:
        self.seen.append(f"before_agent {run.state(Counted).name}")

    async def before_model(self, run: RunContext) -> None:
        self.seen.append(f"before_model {[call.tool for call in run.calls]}")

    async def wrap_model_call(
        self, run: RunContext, request: ModelRequest, handler: ModelHandler
    ) -> Reply:
        self.seen.append(f"{request.purpose} {request.turn}")
        return await handler(request)

    async def after_model(self, run: RunContext, ending: Ending) -> None:
        self.seen.append(f"after_model {ending.turn} {ending.ends}")

    async def check_call(self, run: RunContext, call: ToolCallRequest) -> None:
        self.seen.append(f"check_call {call.row.tool}")

    async def wrap_tool_call(
        self, run: RunContext, call: ToolCallRequest, handler: ToolHandler
    ) -> ToolResult:
        self.seen.append(f"call {call.row.tool} {call.effect}")
        return await handler(call)

    async def after_agent(self, run: RunContext, status: str) -> None:
        self.seen.append(f"after_agent {status}")

    async def close(self, run: RunContext) -> None:
        self.seen.append("close")


class Counted:
    def __init__(self, name: str = "") -> None:
        self.name = name


def test_a_run_calls_each_hook_at_its_moment(tmp_path: Path, install: Install) -> None:
    recorder = Recorder()
    install(recorder)
    run = drive_to_end(play(tmp_path, READ, DONE))
    assert run.status == "completed"
    wait_until(lambda: "close" in recorder.seen)
    assert recorder.seen == [
        "load 0",
        "before_agent tester",
        "before_model []",
        "step 1",
        "after_model 1 False",
        "check_call read_todos",
        "call read_todos read",
        "before_model ['read_todos']",
        "step 2",
        "after_model 2 True",
        "after_agent completed",
        "close",
    ]


class Wrap(Middleware):
    """Implements both wraps, and a hook for the end."""

    def __init__(self, name: str, seen: list[str]) -> None:
        self.name = name  # type: ignore[misc]  # each instance is another middleware
        self.seen = seen

    async def wrap_model_call(
        self, run: RunContext, request: ModelRequest, handler: ModelHandler
    ) -> Reply:
        self.seen.append(f"{self.name}(")
        reply = await handler(request)
        self.seen.append(f"){self.name}")
        return reply

    async def after_model(self, run: RunContext, ending: Ending) -> None:
        self.seen.append(self.name)


def test_lower_places_are_outside_and_each_hook_can_have_its_own(
    tmp_path: Path, install: Install
) -> None:
    seen: list[str] = []
    order = {"a": 2, "b": 1, "b.after_model": 3}
    install(Wrap("a", seen), Wrap("b", seen), order=order)
    drive_to_end(play(tmp_path, DONE))
    assert seen == ["b(", "a(", ")a", ")b", "a", "b"]


@pytest.mark.parametrize(
    ("order", "problem"),
    [
        ({"a": 1, "b": 1}, "'a' and 'b' have the same place 1 for wrap_model_call"),
        ({"a": 1}, "'b' of the feature probe has no place for wrap_model_call"),
        ({"a": 1, "b": 2, "c": 3}, "has 'c', but the feature probe has no such middleware"),
        ({"a": 1, "b": 2, "a.close": 3}, "has 'a.close', but the feature probe has no such"),
    ],
)
def test_an_unclear_order_is_an_error(
    install: Install, order: dict[str, int], problem: str
) -> None:
    install(Wrap("a", []), Wrap("b", []), order=order)
    found = check_features(None)
    assert {error.id for error in found} == {"vel.E029"}
    assert problem in found[0].msg
    with pytest.raises(ImproperlyConfigured, match="middleware_order"):
        chain._order()


def test_two_middleware_of_one_name_are_an_error(install: Install) -> None:
    install(Wrap("a", []), Wrap("a", []), order={"a": 1})
    assert "both have a middleware 'a'" in check_features(None)[0].msg


class Nothing(Recorder):
    name = "nothing"

    def load(self, context: LoadContext) -> None:
        self.seen.append("load")


def test_a_middleware_that_loads_nothing_takes_no_part(tmp_path: Path, install: Install) -> None:
    nothing = Nothing()
    install(nothing)
    drive_to_end(play(tmp_path, READ, DONE))
    assert nothing.seen == ["load"]


def test_unused_hooks_need_no_python_call(tmp_path: Path, install: Install) -> None:
    """The base class has a body for each hook, which is never called."""

    class OneHook(Middleware):
        name = "one_hook"

        async def before_agent(self, run: RunContext) -> None:
            called.append("OneHook.before_agent")

    called: list[str] = []
    bodies = {
        getattr(KernelMiddleware, hook).__code__: f"Middleware.{hook}"
        for hook in ("load", *chain.HOOKS)
    }

    def profile(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code in bodies:
            called.append(bodies[frame.f_code])

    install(OneHook())
    run = play(tmp_path, READ, DONE)
    threading.setprofile(profile)
    try:
        drive_to_end(run)
    finally:
        threading.setprofile(None)
    assert called == ["OneHook.before_agent"]


class Commits(Middleware):
    """Writes a row with each reply and each result."""

    name = "commits"

    def __init__(self, *, alone: bool = False) -> None:
        self.alone = alone
        self.told: list[str] = []

    async def wrap_model_call(
        self, run: RunContext, request: ModelRequest, handler: ModelHandler
    ) -> Reply:
        subject = f"reply {request.turn}"
        request.on_commit(row(subject), self.alone, lambda: self.told.append(subject))
        return await handler(request)

    async def wrap_tool_call(
        self, run: RunContext, call: ToolCallRequest, handler: ToolHandler
    ) -> ToolResult:
        subject = f"result {call.row.turn}"
        result = await handler(call)
        call.on_commit(row(subject), self.alone, lambda: self.told.append(subject))
        return result


@pytest.mark.both_databases
@pytest.mark.parametrize("alone", [False, True])
def test_writes_are_committed_with_the_reply_and_with_the_result(
    tmp_path: Path, install: Install, alone: bool
) -> None:
    commits = Commits(alone=alone)
    install(commits)
    drive_to_end(play(tmp_path, READ, DONE))
    assert rows() == {"reply 1", "result 1", "reply 2"}
    assert commits.told == ["reply 1", "result 1", "reply 2"]


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("point", "before"),
    [
        (CrashPoint.REPLIED, set()),
        (CrashPoint.REPLY_WRITTEN, {"reply 1"}),
        (CrashPoint.TOOL_DONE, {"reply 1"}),
        (CrashPoint.RESULTS_WRITTEN, {"reply 1", "result 1"}),
    ],
)
def test_writes_happen_once_after_any_crash(
    tmp_path: Path, install: Install, point: CrashPoint, before: set[str]
) -> None:
    install(Commits())
    run = play(tmp_path, READ, DONE)
    crash_once(run, point)
    assert rows() == before
    drive_to_end(run)
    assert rows() == {"reply 1", "result 1", "reply 2"}


class ReadsAgain(Commits):
    """Another process changes the run during the first reply. The write has to read it again."""

    name = "reads_again"

    async def wrap_model_call(
        self, run: RunContext, request: ModelRequest, handler: ModelHandler
    ) -> Reply:
        reply = await handler(request)
        clock = RunClock.objects.filter(run=run.row)
        await run.in_database(partial(clock.update, noticed=True))
        request.on_commit(partial(self._write, request), then=lambda: self.told.append("then"))
        return reply

    def _write(self, request: ModelRequest) -> None:
        row(f"reply {request.turn}")()
        if request.noticed and "prepared" not in self.told:
            raise CommitAgain(self._prepare)

    async def _prepare(self) -> None:
        self.told.append("prepared")


def test_a_write_can_read_its_rows_again_before_the_reply_is_stored(
    tmp_path: Path, install: Install
) -> None:
    again = ReadsAgain()
    install(again)
    run = drive_to_end(play(tmp_path, DONE))
    assert run.status == "completed"
    assert again.told == ["prepared", "then"]
    assert rows() == {"reply 1"}
    assert Message.objects.filter(run=run, role="assistant").count() == 1


class LosesFence(Commits):
    """Another driver gets the run while the model or a tool works."""

    name = "loses_fence"

    def __init__(self, moment: str) -> None:
        super().__init__()
        self.moment = moment
        self.closed = threading.Event()

    def _take(self, run_id: str) -> None:
        RunClock.objects.filter(run=run_id).update(fence=F("fence") + 1, lease_holder="another")

    async def wrap_model_call(
        self, run: RunContext, request: ModelRequest, handler: ModelHandler
    ) -> Reply:
        reply = await super().wrap_model_call(run, request, handler)
        if self.moment == "model":
            await run.in_database(self._take, run.row.pk)
        return reply

    async def wrap_tool_call(
        self, run: RunContext, call: ToolCallRequest, handler: ToolHandler
    ) -> ToolResult:
        result = await super().wrap_tool_call(run, call, handler)
        await run.in_database(self._take, run.row.pk)
        return result

    async def close(self, run: RunContext) -> None:
        self.closed.set()


@pytest.mark.both_databases
@pytest.mark.parametrize(("moment", "kept"), [("model", set()), ("tool", {"reply 1"})])
def test_without_the_fence_nothing_is_written(
    tmp_path: Path, install: Install, moment: str, kept: set[str]
) -> None:
    loses = LosesFence(moment)
    install(loses)
    run = play(tmp_path, READ, DONE)
    with running_worker() as running:
        running.submit(run.id)
        assert loses.closed.wait(HANG), "the hook that every exit calls"
    assert rows() == set(loses.told) == kept
    assert Message.objects.filter(run=run, role="assistant").count() == len(kept)
    assert not ToolCall.objects.filter(run=run).exclude(status="started").exists()
    assert RunClock.objects.get(run=run).lease_holder == "another"


class Fails(Middleware):
    """Raises around tool calls, before or after they are made."""

    name = "fails"

    def __init__(self, *, after: bool, message: str = "the wrap is broken") -> None:
        self.after = after
        self.message = message

    async def wrap_tool_call(
        self, run: RunContext, call: ToolCallRequest, handler: ToolHandler
    ) -> ToolResult:
        if self.after:
            call.on_commit(row(call.row.tool))
            await handler(call)
        raise ValueError(self.message)


def test_a_wrap_that_raises_after_the_call_keeps_the_tools_writes(
    tmp_path: Path, install: Install
) -> None:
    install(Fails(after=True))
    run = drive_to_end(play(tmp_path, PLAN, WRITE, DONE))
    assert run.status == "completed", run.error_message
    for call in ToolCall.objects.filter(run=run):
        assert (call.status, call.code, call.attempt) == ("failed", "exception", 1)
        assert "ValueError: the wrap is broken. The call itself was made" in call.result
    assert rows() == {"write_todos", "write_file"}
    assert len(events(run, "todos.updated")) == 1
    assert run.thread.todos.count() == 1
    assert StateFile.objects.filter(path="/a").exists()


def test_a_wrap_that_raises_before_the_call_is_the_result_of_the_call(
    tmp_path: Path, install: Install
) -> None:
    install(Fails(after=False))
    run = drive_to_end(play(tmp_path, WRITE, DONE))
    call = ToolCall.objects.get(run=run)
    assert run.status == "completed"
    assert (call.status, call.code) == ("failed", "exception")
    assert "itself was made" not in call.result
    assert not StateFile.objects.exists()


class Sees(Middleware):
    name = "sees"

    def __init__(self) -> None:
        self.seen: list[tuple[str, bool]] = []

    async def wrap_tool_call(
        self, run: RunContext, call: ToolCallRequest, handler: ToolHandler
    ) -> ToolResult:
        result = await handler(call)
        self.seen.append((str(result.content), result.is_error))
        return result


def test_outer_wraps_see_the_exception_of_a_wrap(tmp_path: Path, install: Install) -> None:
    outer = Sees()
    install(outer, Fails(after=True))
    run = drive_to_end(play(tmp_path, PLAN, DONE))
    assert run.status == "completed"
    ((text, is_error),) = outer.seen
    assert is_error
    assert "ValueError: the wrap is broken" in text


class CallsTwice(Middleware):
    name = "calls_twice"

    async def wrap_tool_call(
        self, run: RunContext, call: ToolCallRequest, handler: ToolHandler
    ) -> ToolResult:
        await handler(call)
        return await handler(call)

    async def wrap_model_call(
        self, run: RunContext, request: ModelRequest, handler: ModelHandler
    ) -> Reply:
        await handler(request)
        return await handler(request)


def test_a_wrap_can_make_a_call_again_that_only_reads(tmp_path: Path, install: Install) -> None:
    install(CallsTwice())
    run = drive_to_end(play(tmp_path, READ, DONE))
    call = ToolCall.objects.get(run=run)
    assert (call.status, call.attempt) == ("succeeded", 2)
    assert [event["attempt"] for event in events(run, "tool.started")] == [1, 2]
    assert len(events(run, "tool.completed")) == 1


def test_a_call_that_may_have_changed_something_is_not_repeated(
    tmp_path: Path, install: Install
) -> None:
    install(CallsTwice())
    run = drive_to_end(play(tmp_path, WRITE, DONE))
    call = ToolCall.objects.get(run=run)
    assert (run.status, call.status, call.attempt) == ("completed", "failed", 1)
    assert "write_file may have changed something, so it cannot be called again" in call.result
    assert StateFile.objects.filter(path="/a").count() == 1


def test_watchers_forget_a_reply_that_is_made_again(tmp_path: Path, install: Install) -> None:
    install(CallsTwice())
    run = drive_to_end(play(tmp_path, DONE))
    kinds = [kind for kind in event_types(run) if kind.startswith("step")]
    assert kinds == ["step.started", "step.reset", "step.completed"]
    assert Message.objects.filter(run=run, role="assistant").count() == 1


class Answers(Middleware):
    name = "answers"

    async def wrap_model_call(
        self, run: RunContext, request: ModelRequest, handler: ModelHandler
    ) -> Reply:
        return Reply([{"type": "text", "text": "From the wrap."}], "end_turn", Usage(), "none")


def test_a_wrap_can_answer_itself(tmp_path: Path, install: Install) -> None:
    install(Answers())
    run = drive_to_end(play(tmp_path, READ, DONE))
    assert run.status == "completed"
    assert Message.objects.get(run=run, role="assistant").text == "From the wrap."


class Hangs(Middleware):
    name = "hangs"

    def __init__(self, place: str) -> None:
        self.place = place
        self.hangs = threading.Event()
        self.seen: list[str] = []

    async def _hang(self, place: str) -> None:
        if place != self.place:
            return
        self.hangs.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.seen.append("cancelled")
            raise
        finally:
            self.seen.append("finally")

    async def wrap_model_call(
        self, run: RunContext, request: ModelRequest, handler: ModelHandler
    ) -> Reply:
        await self._hang("model")
        return await handler(request)

    async def wrap_tool_call(
        self, run: RunContext, call: ToolCallRequest, handler: ToolHandler
    ) -> ToolResult:
        await self._hang("tool")
        return await handler(call)


@pytest.mark.parametrize("place", ["model", "tool"])
def test_a_run_can_be_cancelled_while_a_wrap_waits(
    tmp_path: Path, install: Install, place: str
) -> None:
    hangs = Hangs(place)
    install(hangs)
    run = play(tmp_path, WRITE, DONE)
    with running_worker() as running:
        running.submit(run.id)
        assert hangs.hangs.wait(HANG)
        cancel_run(run.id, by="ada")
        wait_for_status(run, "cancelled")
    assert hangs.seen == ["cancelled", "finally"]
    assert not StateFile.objects.exists()


class Before(Middleware):
    """Returns something before the second turn, once."""

    name = "before"

    def __init__(self, *results: Tell | End | Park) -> None:
        self.results = list(results)
        self.parked: list[str] = []

    async def before_model(self, run: RunContext) -> Tell | End | Park | None:
        return self.results.pop(0) if run.turn and self.results else None

    async def on_park(self, run: RunContext, park: Park) -> None:
        self.parked.append(park.reason)


def test_messages_to_the_model_are_stored_first(tmp_path: Path, install: Install) -> None:
    event = GuardStuck(kind="same_call", count=3, action="note")
    install(Before(Tell("Look at the clock.", [event]), Tell("It is late.")))
    run = drive_to_end(play(tmp_path, READ, READ, DONE))
    told = Message.objects.filter(run=run, author="before")
    assert [(message.turn, message.position) for message in told] == [(1, 1), (2, 1)]
    assert "Look at the clock." in told[0].text
    assert len(events(run, "guard.stuck")) == 1


def test_a_hook_can_end_the_run_before_the_model_is_asked(tmp_path: Path, install: Install) -> None:
    event = GuardStuck(kind="same_call", count=3, action="end")
    install(Before(End("enough", "It is enough.", [event])))
    run = drive_to_end(play(tmp_path, READ, DONE))
    assert (run.status, run.error_code, run.error_message) == ("failed", "enough", "It is enough.")
    assert event_types(run)[-2:] == ["guard.stuck", "run.failed"]
    assert Message.objects.filter(run=run, role="assistant").count() == 1


def test_a_hook_can_park_the_run(tmp_path: Path, install: Install) -> None:
    def settle(locked: Locked) -> Suspend:
        row("asked")()
        return Suspend({"approval_ids": []})

    before = Before(Park("approval", lambda locked: None), Park("approval", settle))
    install(before)
    run = drive_to_end(play(tmp_path, READ, READ, DONE), until=("waiting",))
    assert run.wait_reason == "approval"
    assert before.parked == ["approval", "approval"], "the first had nothing to wait for"
    assert rows() == {"asked"}
    assert RunClock.objects.get(run=run).lease_until is None


class Leaves(Middleware):
    name = "leaves"

    def __init__(self, place: str, reason: Park | End) -> None:
        self.place, self.reason = place, reason
        self.seen: list[str] = []

    def _leave(self, run: RunContext) -> None:
        if self.seen:
            return
        try:
            run.leave(self.reason)
        except Exception:  # noqa: BLE001  # as a careless wrap does
            self.seen.append("caught")
        finally:
            self.seen.append("finally")

    async def wrap_model_call(
        self, run: RunContext, request: ModelRequest, handler: ModelHandler
    ) -> Reply:
        if self.place == "model":
            self._leave(run)
        return await handler(request)

    async def wrap_tool_call(
        self, run: RunContext, call: ToolCallRequest, handler: ToolHandler
    ) -> ToolResult:
        if self.place == call.row.tool:
            self._leave(run)
        return await handler(call)


@pytest.mark.parametrize("place", ["model", "read_todos", "write_file"])
def test_a_wrap_can_end_the_run(tmp_path: Path, install: Install, place: str) -> None:
    leaves = Leaves(place, End("enough", "It is enough."))
    install(leaves)
    calls = [*READ["tool_calls"], {"name": "ls", "input": {"path": "/"}}]
    run = drive_to_end(play(tmp_path, {"tool_calls": calls}, WRITE, DONE))
    assert (run.status, run.error_code) == ("failed", "enough")
    assert leaves.seen == ["finally"]
    if place == "read_todos":
        beside = ToolCall.objects.get(run=run, tool="ls")
        assert beside.status == "succeeded", "another call ends first"


@pytest.mark.parametrize("place", ["model", "read_todos"])
def test_a_wrap_can_park_the_run_and_the_call_is_made_later(
    tmp_path: Path, install: Install, place: str
) -> None:
    leaves = Leaves(place, Park("approval", lambda locked: Suspend({"approval_ids": []})))
    install(leaves)
    run = drive_to_end(play(tmp_path, READ, DONE), until=("waiting",))
    assert leaves.seen == ["finally"]
    Run.objects.filter(pk=run.pk).update(status="queued", wait_reason="")
    run = drive_to_end(run)
    assert run.status == "completed"
    call = ToolCall.objects.get(run=run)
    assert (call.status, call.attempt) == ("succeeded", 1 + (place != "model"))


def test_a_wrap_that_need_not_wait_makes_its_call_again(tmp_path: Path, install: Install) -> None:
    leaves = Leaves("read_todos", Park("approval", lambda locked: None))
    install(leaves)
    run = drive_to_end(play(tmp_path, READ, DONE))
    assert run.status == "completed"
    call = ToolCall.objects.get(run=run)
    assert (call.status, call.attempt) == ("succeeded", 2)


def test_a_call_that_may_change_something_cannot_wait(tmp_path: Path, install: Install) -> None:
    install(Leaves("write_file", Park("approval", lambda locked: Suspend())))
    run = drive_to_end(play(tmp_path, WRITE, DONE))
    call = ToolCall.objects.get(run=run)
    assert (run.status, call.status) == ("completed", "failed")
    assert "cannot wait" in call.result


class Decides(Middleware):
    """Decides about replies that would end the run."""

    def __init__(self, name: str, *decisions: ReplyDecision) -> None:
        self.name = name  # type: ignore[misc]  # each instance is another middleware
        self.decisions = list(decisions)
        self.endings: list[tuple[int, bool]] = []

    async def after_model(self, run: RunContext, ending: Ending) -> ReplyDecision | None:
        self.endings.append((ending.turn, ending.ends))
        return self.decisions.pop(0) if ending.ends and self.decisions else None


def test_a_note_lets_the_model_answer_again(tmp_path: Path, install: Install) -> None:
    told: list[str] = []
    note = ReplyDecision(
        note="Answer again.",
        events=[GuardStuck(kind="empty_reply", count=1, action="note")],
        writes=[row("noted")],
        then=lambda: told.append("noted"),
    )
    first, second = Decides("first", note), Decides("second")
    install(first, second)
    run = drive_to_end(play(tmp_path, {"text": "One."}, DONE))
    assert run.status == "completed"
    assert Message.objects.get(run=run, author="first").turn == 1
    assert rows() == {"noted"}
    assert told == ["noted"]
    assert first.endings == [(1, True), (2, True)]
    assert second.endings == [(1, False), (2, True)], "a note means that the run does not end"


def test_the_first_end_of_a_reply_wins(tmp_path: Path, install: Install) -> None:
    end = ReplyDecision(
        note="Do better.", end=End("bad", "It is bad."), writes=[row("bad")],
        reply=Reply([{"type": "text", "text": "Withheld."}], "end_turn", Usage(), "none"),
    )  # fmt: skip
    second = Decides("second")
    install(Decides("first", end), second)
    run = drive_to_end(play(tmp_path, {"text": "One."}))
    assert (run.status, run.error_code) == ("failed", "bad")
    assert rows() == {"bad"}
    assert second.endings == []
    assert Message.objects.get(run=run, author="first").turn == 1
    assert Message.objects.get(run=run, role="assistant").text == "Withheld."
    assert events(run, "text.completed")[0]["text"] == "One.", "text that watchers saw stays"


def test_the_end_of_a_run_can_have_more_fields(tmp_path: Path, install: Install) -> None:
    install(Decides("first", ReplyDecision(completed={"structured_output": [1]})))
    run = drive_to_end(play(tmp_path, DONE))
    assert events(run, "run.completed")[0]["structured_output"] == [1]


def test_a_note_next_to_calls_is_refused(tmp_path: Path, install: Install) -> None:
    class Notes(Middleware):
        name = "notes"

        async def after_model(self, run: RunContext, ending: Ending) -> ReplyDecision:
            return ReplyDecision(note="Go on.")

    install(Notes())
    run = drive_to_end(play(tmp_path, READ, DONE))
    assert (run.status, run.error_code) == ("failed", "internal_error")
    assert not Message.objects.filter(run=run, turn__gt=0).exists()


class Refuses(CallsTwice):
    """Refuses calls from a certain check on."""

    name = "refuses"

    def __init__(self, allowed: int) -> None:
        self.allowed = allowed

    async def check_call(self, run: RunContext, call: ToolCallRequest) -> Refusal | None:
        self.allowed -= 1
        if self.allowed >= 0:
            return None
        event = GuardStuck(kind="same_call", count=3, action="note")
        return Refusal("Not now.", "it is late", "refused", events=[event])


def test_a_refused_call_is_not_made(tmp_path: Path, install: Install) -> None:
    install(Refuses(0))
    run = drive_to_end(play(tmp_path, WRITE, DONE))
    call = ToolCall.objects.get(run=run)
    assert (run.status, call.status, call.code) == ("completed", "denied", "refused")
    assert call.result == '"Not now."'
    [denied] = events(run, "tool.denied")
    assert (denied["reason"], denied["by"]) == ("it is late", "refuses")
    assert len(events(run, "guard.stuck")) == 1
    assert not StateFile.objects.exists()


def test_each_attempt_is_checked(tmp_path: Path, install: Install) -> None:
    install(Refuses(1))
    run = drive_to_end(play(tmp_path, READ, DONE))
    call = ToolCall.objects.get(run=run)
    assert (call.status, call.code, call.attempt) == ("failed", "refused", 1)


class EndsAtOnce(Middleware):
    name = "ends_at_once"

    def __init__(self, hook: str) -> None:
        self.hook = hook

    def load(self, context: LoadContext) -> object:
        return End("no", "Not here.") if self.hook == "load" else self

    async def before_agent(self, run: RunContext) -> End | None:
        return End("no", "Not here.")


@pytest.mark.parametrize("hook", ["load", "before_agent"])
def test_a_run_can_end_before_anything_that_costs(
    tmp_path: Path, install: Install, hook: str
) -> None:
    install(EndsAtOnce(hook))
    run = drive_to_end(play(tmp_path, DONE))
    assert (run.status, run.error_code) == ("failed", "no")
    assert run.clock.turn == 0


class BreaksLoad(Middleware):
    name = "breaks_load"

    def load(self, context: LoadContext) -> object:
        raise ValueError("broken")


def test_a_middleware_that_cannot_load_ends_the_run(tmp_path: Path, install: Install) -> None:
    install(BreaksLoad())
    run = drive_to_end(play(tmp_path, DONE))
    assert (run.status, run.error_code) == ("failed", "internal_error")


class Shortens(Middleware):
    name = "shortens"

    async def wrap_tool_call(
        self, run: RunContext, call: ToolCallRequest, handler: ToolHandler
    ) -> ToolResult:
        return replace(await handler(call), content="short")


def test_a_wrap_can_change_a_result(tmp_path: Path, install: Install) -> None:
    install(Shortens())
    run = drive_to_end(play(tmp_path, PLAN, DONE))
    assert ToolCall.objects.get(run=run).result == '"short"'
    assert run.thread.todos.count() == 1


@pytest.mark.parametrize(
    ("feature", "fields", "message"),
    [
        ("guardrails", {"guardrails": ["secrets"]}, "guardrails (for guardrails)"),
        ("guardrails", {"on_stuck": "end"}, "stuck (for on_stuck)"),
        ("guardrails", {"tool_retries": [{"tool": "*", "attempts": 2}]}, "tool_retries (for"),
        ("structured_output", {"output_schema": {"type": "object"}}, "structured_output (for"),
    ],
)
def test_a_run_that_needs_a_removed_feature_ends_with_a_clear_reason(
    settings: Any, tmp_path: Path, feature: str, fields: dict[str, Any], message: str
) -> None:
    user = make_user()
    agent = make_agent(user, model=script_file(tmp_path, [DONE]), **fields)
    name = f"agents.features.{feature}"
    settings.INSTALLED_APPS = [app for app in settings.INSTALLED_APPS if app != name]
    for version in (1, 2):
        agent.system_prompt = f"Version {version}."
        save_agent(agent)
        run = drive_to_end(start_run(user))
        assert (run.status, run.error_code) == ("failed", "feature_missing")
        assert message in run.error_message
        assert run.clock.turn == 0
    make_agent(user, slug="plain", name="plain", model=script_file(tmp_path, [DONE], "plain.json"))
    assert drive_to_end(start_run(user, agent="plain")).status == "completed"
