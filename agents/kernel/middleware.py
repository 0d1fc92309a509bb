"""The hooks of features in the turn loop of a run.

A feature lists instances of `Middleware` in its `middleware.MIDDLEWARE`, and gives each of their
hooks a place in its `apps.py`. An instance contains configuration only: all runs of a process share
it. The state of a run is in rows, or in `run.state` while one driver has the run.
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
    """A run that a driver has just claimed."""

    row: Run
    spec: AgentSpec
    turn: int
    """The number of its turns."""
    needs: Mapping[str, str] = field(default_factory=dict)
    """The middleware that the run needs, each with the option that needs it."""


class Leave(BaseException):
    """Raised by `run.leave`. No wrap may catch it."""

    def __init__(self, reason: Park | End) -> None:
        super().__init__(reason)
        self.reason = reason


class RunContext(ABC):
    """One claim of one run, as its middleware sees it."""

    row: Run
    writer: Writer
    _states: dict[type, Any]

    @property
    @abstractmethod
    def spec(self) -> AgentSpec: ...

    @property
    @abstractmethod
    def turn(self) -> int:
        """The number of stored replies."""

    @property
    @abstractmethod
    def head(self) -> PromptHead:
        """The head of the prompt, once the conversation is loaded."""

    @property
    @abstractmethod
    def provider(self) -> Provider:
        """The client of the model API, once the conversation is loaded."""

    @property
    @abstractmethod
    def tools(self) -> Collection[str]:
        """The names of the run's tools, once the conversation is loaded."""

    @property
    @abstractmethod
    def window(self) -> Window:
        """The limits of the model, once the conversation is loaded."""

    @property
    @abstractmethod
    def prompt_tokens(self) -> int:
        """The tokens of the next prompt: the last reply's usage, plus an estimate of the rest."""

    @property
    @abstractmethod
    def token_scale(self) -> float:
        """The factor, from 1.0 to 3.0, by which the last estimates were too low."""

    @property
    @abstractmethod
    def calls(self) -> Sequence[Call]:
        """The calls of the last turn after they have ended.

        Empty if they ended before this claim.
        """

    def state(self, kind: type[T]) -> T:
        """Return the state that `load` returned, or else one new `kind` for each claim."""
        found = self._states.get(kind)
        if found is None:
            found = self._states[kind] = kind()
        return found

    def leave(self, reason: Park | End) -> NoReturn:
        """Release the run from inside a wrap. Parallel calls end first.

        If a park finds nothing to wait for, the call is made again, with all its wraps. A call that
        may have changed something cannot park.
        """
        raise Leave(reason)

    @abstractmethod
    def use_spec(self, spec: AgentSpec) -> None:
        """Drive the run with `spec`, for example with another model. Only in `before_agent`."""

    @abstractmethod
    def provider_named(self, name: str) -> Provider:
        """Return this process's client of a model API. Raises `ProviderError`."""

    @abstractmethod
    async def learn_window(self, error: ProviderError) -> None:
        """Use the limit that the server names in an error, if it names one."""

    @abstractmethod
    def reminders(self) -> list[str]:
        """Return the features' reminders for the model when turns are left out."""

    @abstractmethod
    def files(self) -> FileBackend:
        """Return the files of the thread as its tools see them. Blocks: use `in_thread`.

        Raises `SandboxError`.
        """

    @abstractmethod
    async def ask_aside(self, head: PromptHead, text: str) -> Reply:
        """Call the run's model outside its conversation, with all wraps.

        The call has the purpose `side`. Its tokens and cost are part of the run's totals, and
        watchers do not see it. Raises `ProviderError`.
        """

    @abstractmethod
    async def in_database(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a function in a short transaction. One that writes starts with `held_clock`."""

    @abstractmethod
    async def in_thread(
        self, function: Callable[..., T], *arguments: Any, to_its_end: bool = False
    ) -> T:
        """Run blocking code on a separate thread.

        With `to_its_end`, the result is returned even if the hook is cancelled during the call.
        """

    @abstractmethod
    async def pause(self, seconds: float) -> None:
        """Wait inside a hook, unless the process shuts down or the run is cancelled."""

    @abstractmethod
    async def write_events(
        self, events: Sequence[EventDraft], write: Callable[[], None] | None = None
    ) -> None:
        """Write events, and the rows of `write` in the same transaction, under the fence.

        `write` follows the rules of `on_commit`.
        """


@dataclass(frozen=True, slots=True)
class Commit:
    """A write in the transaction that stores a reply or a result."""

    write: Callable[[], None]
    alone: bool
    then: Callable[[], None] | None


class CommitAgain(Exception):
    """Raised by a write of `on_commit` that needs more data.

    No rows are written. The engine awaits `prepare`, and commits again in a transaction that no
    other run shares.
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
        """Run `write` in the transaction that stores the reply or the result.

        It runs after the check of the fence and after the kernel's own rows. It can run again, so
        it changes rows only; `then` runs once, on the loop, after the commit. A write locks no run,
        no clock and no thread. A write that locks other rows is `alone`: no other run shares its
        transaction. It locks the rows in the order of their ids.
        """
        self.commits.append(Commit(write, alone, then))


class Watched(Protocol):
    """The receiver of the parts of a reply."""

    def add(self, kind: type[Piece], part: str, text: str) -> None: ...

    def put(self, draft: EventDraft) -> None: ...

    def drop_parts(self) -> None: ...


@dataclass
class ModelRequest(_Committing):
    """A model call. A wrap that calls its handler again uses the same object."""

    purpose: Literal["step", "side"]
    """`step`: the reply is a turn of the run. `side`: it is not, for example a summary."""
    turn: int
    model: str
    max_output: int
    """The limit of the reply in tokens."""
    provider: Provider
    conversation: Conversation
    stream: Watched
    """The receiver of the parts of the reply for watchers. A wrap can put a filter here."""
    attempts: int = 0
    """The number of calls of the model."""
    has_parts: bool = False
    """Whether watchers may have parts of a reply that was not completed."""
    noticed: bool = False
    """For writes of `on_commit`: `RunClock.noticed`. Rows that `load` has read may have changed."""

    def reset(self, event: EventDraft) -> None:
        """Send watchers this `step.reset`: they discard the parts of the reply."""
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

        One transaction under the fence runs `write`, which can change how the conversation is
        loaded, stores the epoch, and writes `events`. It can run again, as a write of `on_commit`.
        With `spec` the run continues with the model of `spec`, and so does this request.

        Raises `FenceLost`, and `RuntimeError` for a request with another purpose than `step`.
        """
        raise RuntimeError(f"A model call for the purpose {self.purpose!r} cannot start an epoch.")

    async def discard(self, reply: Reply) -> None:
        """Add a reply that is not stored to the totals of the run: the call is made again.

        The writes of `on_commit` run now, and are removed. Raises `FenceLost`, and `RuntimeError`
        for a request with another purpose than `step`.
        """
        raise RuntimeError(f"A reply for the purpose {self.purpose!r} cannot be discarded.")


@dataclass
class ToolCallRequest(_Committing):
    """A tool call that is about to be made. `row` is its row, as the driver holds it."""

    row: Call
    effect: str
    """The effect of the tool with this input: a value of `agents.models.Effect`."""
    leaves_machine: bool = False
    """Whether the input is sent to another machine, although the effect is `read`."""
    is_whole: bool = False
    """Whether the model needs the whole result. The tool limits it itself."""


ModelHandler = Callable[[ModelRequest], Awaitable[Reply]]
ToolHandler = Callable[[ToolCallRequest], Awaitable[ToolResult]]


@dataclass(frozen=True, slots=True)
class Tell:
    """A message for the model that is not the user's. It is stored before it is sent."""

    text: str
    events: Sequence[EventDraft] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """The refusal of a call. `message` is for the model, and `reason` is for people."""

    message: str
    reason: str
    code: str
    by: str = ""
    """The name of the author. Empty: the middleware."""
    events: Sequence[EventDraft] = ()


@dataclass(frozen=True, slots=True)
class Ending:
    """A reply of the model that is about to be stored."""

    turn: int
    reply: Reply
    shown: Reply
    """The reply for watchers."""
    ends: bool
    """Whether the run ends with it: it has no calls, and no middleware has asked for another
    turn."""


@dataclass(frozen=True, slots=True)
class ReplyDecision:
    """A decision about a reply. All its effects are in one transaction with the reply."""

    note: str = ""
    """A message to the model, for a reply that would end the run: the run continues."""
    end: End | None = None
    """The run fails. If a person resumes it, the model gets the note."""
    reply: Reply | None = None
    """The reply to store and send back instead. Watchers see the model's own reply."""
    shown: Reply | None = None
    """The reply for watchers instead. A middleware that hides text from them also holds back the
    stream: see `ModelRequest.stream`."""
    events: Sequence[EventDraft] = ()
    completed: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the event `run.completed`, if the run completes with this reply."""
    writes: Sequence[Callable[[], None]] = ()
    """As `on_commit`, and before the end of the run. The transaction is not shared."""
    then: Callable[[], None] | None = None
    """Runs once, on the loop, after the commit."""


class Middleware:
    """The base class. A hook that a class does not override costs nothing.

    The kernel calls the hooks in the order of their places; see `agents.kernel.chain`.
    """

    name: ClassVar[str] = ""
    """Unique. It is the author of the messages to the model."""

    def check_settings(self) -> None:
        """Raise `ImproperlyConfigured` for settings with which no process may drive runs."""

    def load(self, context: LoadContext) -> object | End | None:
        """Return the state of a claim for `run.state`, in the transaction of the claim.

        None: the run does not use this middleware, and its hooks are not called.
        """

    async def before_agent(self, run: RunContext) -> End | None:
        """Handle the start of each claim, before any expensive work."""

    async def before_model(self, run: RunContext) -> Tell | End | Park | None:
        """Handle the start of each turn, also of a repeated one."""

    async def wrap_model_call(
        self, run: RunContext, request: ModelRequest, handler: ModelHandler
    ) -> Reply:
        """Make a model call with `handler`, as often as needed. Raises `ProviderError`."""
        return await handler(request)

    async def after_model(self, run: RunContext, ending: Ending) -> ReplyDecision | None:
        """Decide about each reply that is stored, once, until a middleware ends the run."""

    async def check_call(self, run: RunContext, call: ToolCallRequest) -> Refusal | None:
        """Check a call before an approval is requested, and before each attempt to make it."""

    async def wrap_tool_call(
        self, run: RunContext, call: ToolCallRequest, handler: ToolHandler
    ) -> ToolResult:
        """Make a call with `handler`: more than once only if it just reads.

        Change a result with `dataclasses.replace`, which keeps its writes. An exception of a wrap
        becomes the result of the call, and the writes of the tool are also kept. Do not catch
        `CancelledError`.
        """
        return await handler(call)

    async def on_park(self, run: RunContext, park: Park) -> None:
        """Handle a run that is about to be parked. This hook cannot change it."""

    async def after_agent(self, run: RunContext, status: str) -> None:
        """Handle a run that the driver has released, with its present status."""

    async def close(self, run: RunContext) -> None:
        """Handle the end of the driver. Its lease may be lost: write no row of the run."""
