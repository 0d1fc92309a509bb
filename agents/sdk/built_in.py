"""The base class of Vel's own middleware for programs.

In an agent, such a middleware only configures features that Vel has anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from inspect import getattr_static
from typing import Any, ClassVar, Protocol

from agents.custom.base_middleware import BaseMiddleware
from agents.sdk.config import DeepAgentConfig
from agents.sdk.errors import SetupError

_MAY_OVERRIDE = frozenset({"configure", "check"})


class Sessions(Protocol):
    """The sessions of an agent, for a middleware that shows a part of their state.

    Methods block.
    """

    def part(self, session_id: str, name: str) -> Any:
        """Return the part `name` of a session's state, also before the session starts."""

    def replace_part(self, session_id: str, name: str, value: Any) -> None:
        """Replace the part `name` of a session's state. Does nothing before the session starts.

        Raises `SetupError` if the session is at work.
        """


class BuiltInMiddleware(BaseMiddleware):
    """A middleware of Vel.

    In an agent, this object only sets the agent's configuration: the engine calls none of its tools
    and hooks.
    """

    leave_out: ClassVar[str] = ""
    """The advice on how to create an agent without this part of Vel.

    Each class has its own text.
    """
    adds_up: ClassVar[bool] = False
    """Whether an agent can have several instances, whose values are then joined."""

    def configure(self, config: DeepAgentConfig) -> DeepAgentConfig:
        """Return `config` with the values of this middleware. Raises `SetupError`."""
        raise NotImplementedError

    def check(self, config: DeepAgentConfig) -> None:
        """Raise `SetupError` if other middleware or arguments contradict this middleware."""

    def begins_with(self) -> Mapping[str, Any]:
        """Return the parts of the state with which each new session of the agent starts."""
        return {}

    def follow(self, sessions: Sessions, session_id: str) -> None:
        """Handle the start or continuation of a session by an agent with this middleware."""

    def leave(self, sessions: Sessions) -> None:
        """Handle that the agent is about to close. Its sessions can still be read."""


def built_in(config: DeepAgentConfig) -> list[BuiltInMiddleware]:
    """Return those middleware of `config` that are Vel's own."""
    return [item for item in config.middleware if isinstance(item, BuiltInMiddleware)]


def settled(config: DeepAgentConfig) -> DeepAgentConfig:
    """Return `config` with the values of Vel's middleware. Only other middleware stays in it.

    Raises `SetupError` for middleware that contradicts the config, is given twice, or overrides
    methods that agents do not call.
    """
    own = [item for item in config.middleware if not isinstance(item, BuiltInMiddleware)]
    given = built_in(config)
    if not given:
        return config
    seen: dict[type[BuiltInMiddleware], str] = {}
    for item in given:
        kind, name = _kind_of(item), type(item).__name__
        _refuse_overrides(item, kind)
        if kind in seen and not kind.adds_up:
            raise SetupError(
                f"middleware: {name} is given twice, as {seen[kind]} and {name}: an agent has one "
                f"{kind.__name__}. Leave one out."
            )
        seen[kind] = name
        try:
            config = item.configure(config)
        except SetupError as error:
            raise _naming(name, error) from None
    for item in given:
        try:
            item.check(config)
        except SetupError as error:
            raise _naming(type(item).__name__, error) from None
    return replace(config, middleware=own)


def with_options(config: DeepAgentConfig, values: Mapping[str, Any], name: str) -> DeepAgentConfig:
    """Return `config` with the agent options `values`, except those that are None.

    Raises `SetupError` if `config` has another value of an option. `name` is the name of the
    middleware for the error.
    """
    given = {option: value for option, value in values.items() if value is not None}
    for option, value in given.items():
        if config.options.get(option, value) != value:
            raise SetupError(
                f"options: {option}={config.options[option]!r} contradicts {value!r} of the "
                f"{name}: leave one out."
            )
    return replace(config, options={**config.options, **given})


def value_of(argument: str, given: Any, own: Any, usual: Any, name: str) -> Any:
    """Return the value of an argument: `given` or `own`, whichever is not the default `usual`.

    Args:
        argument: The argument's name, for the error.
        given: The value that the agent has.
        own: The value that the middleware has.
        usual: The default of both.
        name: The name of the middleware, for the error.

    Raises:
        SetupError: If neither is the default and they differ.
    """
    if own == usual or given == own:
        return given
    if given != usual:
        raise SetupError(f"{argument}={given!r} contradicts {own!r} of the {name}: leave one out.")
    return own


def _kind_of(item: BuiltInMiddleware) -> type[BuiltInMiddleware]:
    """Return the class of Vel that `item` is an instance of, also for a subclass."""
    return next(base for base in type(item).__mro__ if "leave_out" in vars(base))


def _refuse_overrides(item: BuiltInMiddleware, kind: type[BuiltInMiddleware]) -> None:
    """Raise `SetupError` for a subclass with methods that no agent would call."""
    changed = [
        name
        for name in dir(type(item))
        if not name.startswith("_")
        and name not in _MAY_OVERRIDE
        and callable(getattr(kind, name, None))
        and getattr_static(type(item), name) is not getattr_static(kind, name)
    ]
    if changed:
        raise SetupError(
            f"middleware: {type(item).__name__} overrides {', '.join(changed)}, but agents do not "
            f"call it: a {kind.__name__} only configures Vel's own middleware. To replace that, "
            "derive your class from BaseMiddleware, give its tools other names, and turn Vel's "
            f"off ({kind.leave_out})."
        )


def _naming(name: str, error: SetupError) -> SetupError:
    text = str(error)
    return error if name in text else SetupError(f"{name}: {text}")
