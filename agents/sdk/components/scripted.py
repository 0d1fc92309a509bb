"""A scripted model for tests and for programs that run offline."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agents.providers.registry import get_provider
from agents.providers.scripted import FILE_PREFIX, ScriptedProvider
from agents.providers.scripts.base import Message, Script, ScriptTurn
from agents.sdk import arguments
from agents.sdk.errors import SetupError

Turn = Mapping[str, Any] | str
TurnFunction = Callable[[list[Message]], Turn]


_DEFAULT_NAME = "program"
_FROM_FILE = (
    "For a script in a JSON file, with an absolute path, set "
    f'model={{"provider": "scripted", "model": "{FILE_PREFIX}/path"}}.'
)
_made = itertools.count(1)


def scripted_model(turns: Sequence[Turn] | TurnFunction, name: str | None = None) -> dict[str, Any]:
    """Return a model for `model=` of an agent, with replies written by the program.

    Each turn is a text, or `{"text", "tool_calls": [(tool, input), …], "delay"}` with a delay in
    seconds. The turns answer one message, and start again with each message. Instead, give a
    function that returns a turn for the messages so far (`{"role", "content": [blocks]}`).
    Subagents use the same script.

    A run that waits or has failed continues with the script of the same name, also in another
    process. A second script with a name replaces the first one. Without a name, the scripts of a
    process are called `program`, `program-2`, and so on.

    >>> model = scripted_model([{"tool_calls": [("ls", {})]}, "There are no files."])
    >>> asyncio.run(create_deep_agent(model, sandbox=False).run("What is there?"))
    'There are no files.'
    """
    if name is not None and (not isinstance(name, str) or not name):
        raise arguments.wrong("name", "a text", name)
    if name is not None and name.startswith(FILE_PREFIX):
        raise SetupError(f"name must not start with {FILE_PREFIX}, got {name!r}. {_FROM_FILE}")
    if isinstance(turns, str):
        raise SetupError(
            f"turns must be a list of replies, or a function, got {turns!r:.80}. {_FROM_FILE}"
        )
    if not callable(turns):
        for at, turn in enumerate(arguments.listed("turns", turns, "replies, or a function")):
            if not isinstance(turn, str | Mapping):
                raise arguments.wrong(f"turns: number {at + 1}", "a text or a dictionary", turn)
    if name is None:
        number = next(_made)
        name = _DEFAULT_NAME if number == 1 else f"{_DEFAULT_NAME}-{number}"
    provider = get_provider("scripted")
    assert isinstance(provider, ScriptedProvider)
    if callable(turns):
        make = turns
        provider.scripts[name] = lambda messages: _turn(make(messages))
    else:
        provider.scripts[name] = Script([_turn(turn) for turn in turns])
    return {"provider": "scripted", "model": name}


def _turn(given: Turn) -> ScriptTurn:
    if isinstance(given, str):
        return ScriptTurn(given)
    calls = [
        (call["name"], call.get("input", {})) if isinstance(call, Mapping) else (call[0], call[1])
        for call in given.get("tool_calls", ())
    ]
    return ScriptTurn(given.get("text", ""), calls, float(given.get("delay", 0)))
