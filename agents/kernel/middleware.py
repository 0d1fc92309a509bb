"""The hooks of features in the turns of a run.

A feature lists instances of `Middleware` in its `middleware.MIDDLEWARE`, and gives each of their
hooks a place in its `apps.py`. An instance contains configuration only: all runs of a process share
it. The state of a run is in rows, or in `run.state` while one worker executes the run. A hook whose
name starts with `wrap_` is called a wrap.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NoReturn, Protocol, TypeVar

from agents.events.append import EventDraft
from agents.events.event import Piece
from agents.kernel.lease import Writer
from agents.kernel.park import End, Park
from agents.kernel.tool_calls import Call, ToolResult
from agents.kernel.window import Window
from agents.models import Run
from agents.providers.base import Conversation, PromptHead, Provider, ProviderError, Reply
from agents.spec import AgentSpec
from sandbox.backends.protocol import FileBackend

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LoadContext:
    """A run that a worker has just claimed."""

    row: Run
    spec: AgentSpec
    turn: int
    """The number of the run's stored turns."""
    needs: Mapping[str, str] = field(default_factory=dict)
    """The middleware that the run needs, each with the option that needs it."""


class Leave(BaseException):
    """Raised by `run.leave`. No wrap may catch it."""

    def __init__(self, reason: Park | End) -> None:
        super().__init__(reason)
        self.reason = reason


class RunContext(ABC):
    """A run during one claim, as its middleware uses it."""

    row: Run
    writer: Writer
    _states: dict[type, Any]

    @property
    @abstractmethod
    def spec(self) -> AgentSpec: ...

    @property
    @abstractmethod
    def turn(self) -> int:
        """Return the number of stored replies."""

    @property
    @abstractmethod
    def head(self) -> PromptHead:
        """Return the head of the prompt. The conversation must be loaded."""

    @property
    @abstractmethod
    def provider(self) -> Provider:
        """Return the client of the model API. The conversation must be loaded."""

    @property
    @abstractmethod
    def tools(self) -> Collection[str]:
        """Return the names of the run's tools. The conversation must be loaded."""

    @property
    @abstractmethod
    def window(self) -> Window:
        """Return the token limits of the model. The conversation must be loaded."""

    @property
    @abstractmethod
    def prompt_tokens(self) -> int:
        """Return an estimate of the tokens of the next prompt.

        It is the usage of the last reply, plus an estimate of the rest.
        """

    @property
    @abstractmethod
    def token_scale(self) -> float:
        """Return the factor, from 1.0 to 3.0, by which the last token estimates were too low."""

    @property
    @abstractmethod
    def calls(self) -> Sequence[Call]:
        """Return the tool calls of the last turn, once all of them have ended.

        Before that, and if they had ended when this process claimed the run, the result is empty.
        """

    def state(self, kind: type[T]) -> T:
        """Return the state that `load` returned, or else one new `kind()` for each claim."""
        found = self._states.get(kind)
        if found is None:
            found = self._states[kind] = kind()
        return found

    def leave(self, reason: Park | End) -> NoReturn:
        """Park or end the run from inside a wrap. Parallel calls end first.

        If `Park.settle` returns None, the call is made again, with all its wraps. A tool call whose
        effect is not `read` cannot park the run: it gets an error as its result.
        """
        raise Leave(reason)

    @abstractmethod
    def use_spec(self, spec: AgentSpec) -> None:
        """Continue with `spec`, for example with another model.

        Only `before_agent` may call this.
        """

    @abstractmethod
    def provider_named(self, name: str) -> Provider:
        """Return the process's client of the model API called `name`. Raises `ProviderError`."""

    @abstractmethod
    async def learn_window(self, error: ProviderError) -> None:
        """Store the limit of the context window that the server's error names, if it names one."""

    @abstractmethod
    def reminders(self) -> list[str]:
        """Return the features' texts that replace earlier turns in a prompt without them."""

    @abstractmethod
    def files(self) -> FileBackend:
        """Return the files of the thread as its tools see them.

        Blocks, so call it with `in_thread`. Raises `SandboxError`.
        """

    @abstractmethod
    async def ask_aside(self, head: PromptHead, text: str) -> Reply:
        """Call the run's model outside its conversation, with all wraps, and return the reply.

        The call has the purpose `side`. Its tokens and cost are part of the run's totals, and
        watchers do not see it. Raises `ProviderError`.
        """

    @abstractmethod
    async def accepts_message(self, text: str) -> bool:
        """Return whether all middleware accept that a person's message joins the run."""

    @abstractmethod
    async def in_database(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function in a short transaction.

        A function that writes must start with `held_clock`.
        """

    @abstractmethod
    async def in_thread(
        self, function: Callable[..., T], *arguments: Any, to_its_end: bool = False
    ) -> T:
        """Call a blocking function on a separate thread, and wait for its end in any case.

        If the hook is cancelled during the call, `CancelledError` is then raised. With
        `to_its_end`, the result is returned instead.
        """

    @abstractmethod
    async def pause(self, seconds: float) -> None:
        """Wait some seconds.

        If the process shuts down or the run is cancelled, an exception ends the wait early. Do not
        catch it: it stops the run.
        """

    @abstractmethod
    async def write_events(
        self, events: Sequence[EventDraft], write: Callable[[], None] | None = None
    ) -> None:
        """Write events and rows in one transaction, after a check of the fencing token.

        `write` writes the rows, and follows the rules of `on_commit`.
        """


@dataclass(frozen=True, slots=True)
class Commit:
    """A write for the transaction that stores a reply or a result."""

    write: Callable[[], None]
    alone: bool
    then: Callable[[], None] | None


class CommitAgain(Exception):
    """Raised by a function passed to `on_commit` of a request, if it needs more data.

    The transaction is rolled back. The engine awaits `prepare()`, and calls all functions again, in
    a transaction that no other run shares.
    """

    def __init__(self, prepare: Callable[[], Awaitable[None]]) -> None:
        super().__init__()
        self.prepare = prepare


@dataclass
class _Committing:
    commits: list[Commit] = field(default_factory=list, kw_only=True)

    def on_commit(
        self,
        write: Callable[[], None],
        alone: bool = False,
        then: Callable[[], None] | None = None,
    ) -> None:
        """Add `write` to the transaction that stores the reply or the result.

        Args:
            write: Called after the check of the fencing token, when the kernel has written its own
                rows. It can be called again, so it must only change rows. It must not lock a run, a
                clock or a thread.
            alone: Whether `write` locks other rows: then no other run shares the transaction.
                `write` must lock the rows in the order of their ids.
            then: Called once, on the event loop, after the commit.
        """
        self.commits.append(Commit(write, alone, then))


class Watched(Protocol):
    """Receives the parts of a reply for watchers."""

    def add(self, kind: type[Piece], part: str, text: str) -> None: ...

    def put(self, draft: EventDraft) -> None: ...

    def drop_parts(self) -> None: ...


@dataclass
class ModelRequest(_Committing):
    """A model call. A wrap that calls its handler again uses the same object."""

    purpose: Literal["step", "side"]
    """`step`: the reply is a turn of the run. `side`: the reply is not, for example a summary."""
    turn: int
    model: str
    max_output: int
    """The maximum length of the reply in tokens."""
    provider: Provider
    conversation: Conversation
    stream: Watched
    """The receiver of the parts of the reply for watchers. A wrap can put a filter in its place."""
    attempts: int = 0
    """How often the model was called for this request."""
    has_parts: bool = False
    """Whether watchers may have received parts of a reply that was not completed."""
    noticed: bool = False
    """For writes of `on_commit`: `RunClock.noticed`.

    If set, rows that `load` has read may be outdated.
    """

    def reset(self, event: EventDraft) -> None:
        """Send watchers `event`, a `step.reset`: they discard the parts of the reply."""
        self.stream.drop_parts()
        self.stream.put(event)
        self.has_parts = False

    async def begin_epoch(
        self,
        events: Sequence[EventDraft] = (),
        *,
        write: Callable[[], None] | None = None,
        spec: AgentSpec | None = None,
    ) -> None:
        """Start an epoch before the next attempt: a new head, and the conversation from its rows.

        Within an epoch, the start of the prompt does not change (`agents.engine.prompt.epoch`).

        One transaction checks the fencing token, calls `write`, stores the epoch, and writes
        `events`. `write` can change how the conversation is loaded. It can be called again, as for
        `on_commit`. With `spec` the run and this request continue with the model of `spec`.

        Raises `FenceLost`, and `RuntimeError` for a request with another purpose than `step`.
        """
        raise RuntimeError(f"A model call for the purpose {self.purpose!r} cannot start an epoch.")

    async def discard(self, reply: Reply) -> None:
        """Add a reply that is not stored to the totals of the run, because the call is made again.

        The writes of `on_commit` run now, and are removed. Raises `FenceLost`, and `RuntimeError`
        for a request with another purpose than `step`.
        """
        raise RuntimeError(f"A reply for the purpose {self.purpose!r} cannot be discarded.")


@dataclass
class ToolCallRequest(_Committing):
    """A tool call that is about to be made. `row` is the journal's row in the worker's memory."""

    row: Call
    effect: str
    """The effect of the tool with this input, a value of `agents.models.Effect`."""
    leaves_machine: bool = False
    """Whether the input is sent to another machine, although the effect is `read`."""
    is_whole: bool = False
    """Whether the model needs the complete result. The tool limits the size itself."""


ModelHandler = Callable[[ModelRequest], Awaitable[Reply]]
ToolHandler = Callable[[ToolCallRequest], Awaitable[ToolResult]]


@dataclass(frozen=True, slots=True)
class Tell:
    """A message of Vel to the model. It is stored before it is sent."""

    text: str
    events: Sequence[EventDraft] = ()


@dataclass(frozen=True, slots=True)
class Join:
    """Messages that wait in the thread and become part of the run, before its next model call.

    One transaction checks the fencing token, stores the messages in this run with their events,
    and ends the waiting runs. A waiting run that has started or ended meanwhile is omitted.
    """

    runs: Sequence[str]
    """The ids of the waiting runs, in the order of their messages."""
    by: str
    """The name of the user who sends the messages now."""
    settle: Callable[[], None]
    """Writes the rows of the feature in the same transaction. It can be called again."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The refusal of a call. `message` is for the model, and `reason` is for people."""

    message: str
    reason: str
    code: str
    by: str = ""
    """The name of the author of the refusal. Empty: the middleware."""
    events: Sequence[EventDraft] = ()


@dataclass(frozen=True, slots=True)
class Ending:
    """A reply of the model that is about to be stored."""

    turn: int
    reply: Reply
    shown: Reply
    """The reply that watchers see."""
    ends: bool
    """Whether the run ends: the reply has no calls, and no middleware has asked for another turn.
    """


@dataclass(frozen=True, slots=True)
class ReplyDecision:
    """A decision about a reply. Its effects are in the transaction that stores the reply."""

    note: str = ""
    """A message to the model after a reply that would end the run. The run continues."""
    end: End | None = None
    """Fails the run. If a person resumes it, the model receives the note."""
    reply: Reply | None = None
    """The reply to store and send back in its place. Watchers see the model's own reply."""
    shown: Reply | None = None
    """The reply for watchers in place of the model's.

    A middleware that hides text from watchers must also hold back the stream: see
    `ModelRequest.stream`.
    """
    events: Sequence[EventDraft] = ()
    completed: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the event `run.completed`, if the run completes with this reply."""
    writes: Sequence[Callable[[], None]] = ()
    """Writes as in `on_commit`, before the end of the run. No other run shares the transaction."""
    then: Callable[[], None] | None = None
    """Called once, on the event loop, after the commit."""


class Middleware:
    """The base class of middleware. A hook that a class does not override costs nothing.

    The kernel calls the hooks in the order of their places; see `agents.kernel.chain`.
    """

    name: ClassVar[str] = ""
    """The unique name of the middleware, which is the author of its messages to the model."""

    def check_settings(self) -> None:
        """Raise `ImproperlyConfigured` if no process may execute runs with the current settings."""

    def load(self, context: LoadContext) -> object | End | None:
        """Return the state for `run.state`, or None if the run does not use this middleware.

        Called in the transaction that claims the run. After None, the hooks are not called. An
        `End` fails the run.
        """

    async def before_agent(self, run: RunContext) -> End | None:
        """Handle the start of each claim, before any expensive work. An `End` fails the run."""

    async def before_model(self, run: RunContext) -> Tell | End | Park | None:
        """Handle the start of each turn, also if it is repeated."""

    async def before_request(self, run: RunContext) -> Join | None:
        """Add messages that wait to the run, right before the model call of a turn.

        All calls have ended, and no limit forbids the model call. Before the first reply
        (`run.turn` is 0), a `Join` is not allowed.
        """

    async def accepts_message(self, run: RunContext, text: str) -> bool:
        """Return whether a person's message may join the run as it is.

        False: it must start its own run, where `before_agent` can change or refuse it.
        """
        return True

    async def wrap_model_call(
        self, run: RunContext, request: ModelRequest, handler: ModelHandler
    ) -> Reply:
        """Make a model call with `handler`, as often as needed. Raises `ProviderError`."""
        return await handler(request)

    async def after_model(self, run: RunContext, ending: Ending) -> ReplyDecision | None:
        """Decide about a reply before it is stored.

        Called once for each reply. After a middleware has failed the run, the following ones are
        not called.
        """

    async def check_call(self, run: RunContext, call: ToolCallRequest) -> Refusal | None:
        """Check a call before an approval is requested, and before each attempt to make it."""

    async def wrap_tool_call(
        self, run: RunContext, call: ToolCallRequest, handler: ToolHandler
    ) -> ToolResult:
        """Make a call with `handler`, more than once only if the call just reads.

        Change a result with `dataclasses.replace`, which keeps its writes. An exception of a wrap
        becomes the result of the call, and the writes of the tool are kept. Do not catch
        `CancelledError`.
        """
        return await handler(call)

    async def on_park(self, run: RunContext, park: Park) -> None:
        """Handle that the run is about to be parked. This hook cannot prevent it."""

    async def after_agent(self, run: RunContext, status: str) -> None:
        """Handle that the worker has released the run. `status` is the run's present status."""

    async def close(self, run: RunContext) -> None:
        """Handle that the worker stops executing the run.

        Its lease may be lost, so write no rows of the run.
        """
