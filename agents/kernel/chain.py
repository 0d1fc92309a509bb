"""Put the hooks of all middleware in order, and build the chain of a run.

A feature gives each hook a place in its `apps.py`, for example `middleware_order = {"retries": 900,
"stuck.after_model": 200}`. The name of a middleware without a hook applies to all its hooks. Hooks
with lower numbers run first. Of the hooks that wrap a call (`wrap_…`), those with lower numbers are
outside. Two middleware cannot have the same place for a hook.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

from agents.kernel.features import FeatureConfig, collect
from agents.kernel.middleware import (
    LoadContext,
    Middleware,
    ModelHandler,
    RunContext,
    ToolCallRequest,
    ToolHandler,
)
from agents.kernel.park import End
from agents.kernel.tool_calls import ToolResult

ToolFailure = Callable[[ToolCallRequest, Exception, ToolResult | None], ToolResult]
"""Returns the result of a call whose wrap has raised an exception.

The arguments are the call, the exception, and the result that the wrap received. Exceptions that
are not errors of the wrap are raised.
"""

HOOKS = (
    "before_agent",
    "before_model",
    "before_request",
    "accepts_message",
    "wrap_model_call",
    "after_model",
    "check_call",
    "wrap_tool_call",
    "on_park",
    "after_agent",
    "close",
)


@dataclass(frozen=True, slots=True)
class Chain:
    """The middleware of each hook in order. Runs with the same middleware share a chain."""

    before_agent: tuple[Middleware, ...] = ()
    before_model: tuple[Middleware, ...] = ()
    before_request: tuple[Middleware, ...] = ()
    accepts_message: tuple[Middleware, ...] = ()
    wrap_model_call: tuple[Middleware, ...] = ()
    after_model: tuple[Middleware, ...] = ()
    check_call: tuple[Middleware, ...] = ()
    wrap_tool_call: tuple[Middleware, ...] = ()
    on_park: tuple[Middleware, ...] = ()
    after_agent: tuple[Middleware, ...] = ()
    close: tuple[Middleware, ...] = ()

    def model_handler(self, run: RunContext, handler: ModelHandler) -> ModelHandler:
        """Return `handler` inside the wraps of all middleware."""
        for item in reversed(self.wrap_model_call):
            handler = partial(item.wrap_model_call, run, handler=handler)
        return handler

    def tool_handler(
        self, run: RunContext, handler: ToolHandler, failed: ToolFailure
    ) -> ToolHandler:
        """Return `handler` inside the wraps of all middleware.

        `failed` converts the exception of a wrap to a result, so that the outer wraps always
        receive a result.
        """
        for item in reversed(self.wrap_tool_call):
            handler = partial(_call_wrap, item, run, handler, failed)
        return handler


async def _call_wrap(
    item: Middleware,
    run: RunContext,
    handler: ToolHandler,
    failed: ToolFailure,
    call: ToolCallRequest,
) -> ToolResult:
    made: ToolResult | None = None

    async def inner(call: ToolCallRequest) -> ToolResult:
        nonlocal made
        made = await handler(call)
        return made

    try:
        return await item.wrap_tool_call(run, call, inner)
    except Exception as error:  # noqa: BLE001  # `failed` logs it, or raises it again
        return failed(call, error, made)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The chain of a run for one claim, and the states that `run.state` returns."""

    chain: Chain
    states: dict[type, Any] = field(default_factory=dict)
    end: End | None = None
    """The reason why the run cannot be executed, None if it can."""


def load(context: LoadContext) -> Loaded:
    """Let all middleware load their state of a run, and return the states and the chain.

    If needed middleware is not installed, or a middleware returns an `End`, only `Loaded.end` is
    set. Call this in the transaction that claims the run. Raises `ImproperlyConfigured` if a hook
    has no valid place.
    """
    states: dict[type, Any] = {}
    absent = set()
    missing = context.needs.keys() - {item.name for item in installed()}
    if missing:
        return Loaded(Chain(), {}, _feature_missing(context, sorted(missing)))
    for item in installed():
        if not _overrides(item, "load"):
            continue
        state = item.load(context)
        if state is None:
            absent.add(item.name)
        elif isinstance(state, End):
            return Loaded(Chain(), {}, state)
        else:
            states[type(state)] = state
    return Loaded(_chain_without(frozenset(absent)), states)


def _feature_missing(context: LoadContext, names: Sequence[str]) -> End:
    needs = ", ".join(f"{name} (for {context.needs[name]})" for name in names)
    return End(
        "feature_missing",
        f"This run needs middleware that is not installed here: {needs}. Install the feature that "
        "has it, or change the agent.",
    )


@lru_cache(maxsize=1)
def installed() -> tuple[Middleware, ...]:
    """Return the middleware of all features."""
    return tuple(item for _, item in _entries())


def check_settings() -> None:
    """Let all middleware check their settings. Raises `ImproperlyConfigured`."""
    for item in installed():
        item.check_settings()


@lru_cache(maxsize=256)
def _chain_without(absent: frozenset[str]) -> Chain:
    order = _order()
    return Chain(
        **{hook: tuple(item for item in order[hook] if item.name not in absent) for hook in HOOKS}
    )


@lru_cache(maxsize=1)
def _order() -> Mapping[str, tuple[Middleware, ...]]:
    """Return the middleware of each hook in order.

    Raises `ImproperlyConfigured` if a place is missing, unknown or used twice.
    """
    problems = list(order_problems())
    if problems:
        raise ImproperlyConfigured(" ".join(problems))
    order = {}
    for hook in HOOKS:
        placed = [
            (_place(config, item, hook), item)
            for config, item in _entries()
            if _overrides(item, hook)
        ]
        order[hook] = tuple(item for _, item in sorted(placed, key=lambda pair: pair[0] or 0))
    return order


def order_problems() -> Iterator[str]:
    """Yield an error for each place that is missing, unknown or used twice.

    Also for each name that two middleware have.
    """
    entries = _entries()
    names: dict[str, str] = {}
    for config, item in entries:
        hooks = [hook for hook in HOOKS if _overrides(item, hook)]
        if not (hooks or _overrides(item, "load")):
            continue
        if item.name in names:
            yield (
                f"The features {names[item.name]} and {config.label} both have a middleware "
                f"{item.name!r}. Rename one."
            )
        names[item.name] = config.label
        for hook in hooks:
            if _place(config, item, hook) is None:
                yield (
                    f"The middleware {item.name!r} of the feature {config.label} has no place for "
                    f"{hook}. Add {item.name!r} or '{item.name}.{hook}' with a number to "
                    f"middleware_order of {type(config).__name__}."
                )
    for config in {config for config, _ in entries}:
        own = [item for owner, item in entries if owner is config]
        for key in config.middleware_order:
            name, _, hook = key.partition(".")
            fits = [item for item in own if item.name == name]
            if not any(not hook or (hook in HOOKS and _overrides(item, hook)) for item in fits):
                yield (
                    f"middleware_order of {type(config).__name__} has {key!r}, but the feature "
                    f"{config.label} has no such middleware or hook. Remove it."
                )
    for hook in HOOKS:
        taken: dict[int, str] = {}
        for config, item in entries:
            place = _place(config, item, hook)
            if place is None or not _overrides(item, hook):
                continue
            if place in taken:
                yield (
                    f"The middleware {taken[place]!r} and {item.name!r} have the same place "
                    f"{place} for {hook}. Give one of them another number in middleware_order."
                )
            taken[place] = item.name


def _entries() -> list[tuple[FeatureConfig, Middleware]]:
    return collect("middleware", "MIDDLEWARE")


def _place(config: FeatureConfig, item: Middleware, hook: str) -> int | None:
    order = config.middleware_order
    return order.get(f"{item.name}.{hook}", order.get(item.name))


def _overrides(item: Middleware, hook: str) -> bool:
    return getattr(type(item), hook) is not getattr(Middleware, hook)


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "INSTALLED_APPS":
        installed.cache_clear()
        _order.cache_clear()
        _chain_without.cache_clear()


setting_changed.connect(_forget, dispatch_uid="agents.kernel.chain")
