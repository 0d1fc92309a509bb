"""The states of an agent's sessions: the stored ones, and those with which sessions start."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from agents.kernel.lazy_modules import lazy_modules
from agents.sdk.built_in import BuiltInMiddleware
from agents.sdk.environment.process import engine
from agents.sdk.errors import SetupError

with lazy_modules:
    # Import late, because these modules need Django's apps.
    from agents.sdk.rows import definition as definitions
    from agents.sdk.rows import state


class SessionStates:
    """Reads and restores the states of sessions, see `agents.sdk.rows.state`.

    All methods except `beginning` and `begun` block.
    """

    def __init__(self, middleware: Sequence[BuiltInMiddleware]) -> None:
        """Create an object for an agent with Vel's own `middleware`, given by the program."""
        self._middleware = middleware
        self._to_load: dict[str | None, dict[str, Any]] = {}
        """Restored states by session, until the session starts.

        None: the next session that starts.
        """

    def beginning(self, session_id: str | None) -> tuple[str | None, dict[str, Any]]:
        """Return (key, state) of a session that starts. Then pass the key to `begun`.

        The state is the one restored for `session_id`, else the one restored for the next session,
        else the parts from the middleware. Does not block.
        """
        key = session_id if session_id in self._to_load else None
        if key in self._to_load:
            return key, self._to_load[key]
        given = [item.begins_with() for item in self._middleware]
        return key, {name: part for parts in given for name, part in parts.items()}

    def begun(self, key: str | None) -> None:
        """Discard the restored state of a session that has started. Does not block."""
        self._to_load.pop(key, None)

    def read(
        self, definition: definitions.Definition, owner: Any, session_id: str | None
    ) -> dict[str, Any]:
        """Return the state of a session, also before it starts."""
        found = None
        if session_id is not None:
            found = engine.ask(state.read_session, definition, owner, session_id).result()
        if found is None:
            _, begins = self.beginning(session_id)
            found = {**engine.ask(state.empty_state, definition).result(), **begins}
        return {"session_id": session_id, **found}

    def load(
        self,
        definition: definitions.Definition,
        owner: Any,
        given: Any,
        session_id: str | None,
        last_session_id: str | None,
    ) -> str | None:
        """Restore a state in a session, or keep it until the session starts.

        Return the session's id.

        The session is `session_id`, else that of the state, else the last one.
        """
        found = state.json_of(given)
        session_id = session_id or found.get("session_id") or last_session_id
        checked = engine.ask(state.check_state, definition, owner, found).result()
        for keeper in definition.toolkit.keepers():
            if keeper.name in checked["middleware"]:
                _try_state(keeper, checked["middleware"][keeper.name])
        if (
            session_id is not None
            and engine.ask(state.write_session, definition, owner, session_id, checked).result()
        ):
            self.begun(session_id)
        else:
            self._to_load[session_id] = checked
        return session_id

    def replace_part(
        self, definition: definitions.Definition, owner: Any, session_id: str, name: str, value: Any
    ) -> None:
        engine.ask(state.write_session, definition, owner, session_id, {name: value}).result()


def _try_state(keeper: Any, value: Any) -> None:
    """Raise `SetupError` if a middleware cannot load its part of a state."""
    try:
        turn = engine.worker.wait_for(keeper.reserve())
    except TimeoutError:
        raise SetupError(
            f"load_state: the middleware {keeper.name} is in use by a session. Wait for its end."
        ) from None
    try:
        keeper.middleware.load_state(copy.deepcopy(value))
    except Exception as error:
        raise SetupError(
            f"load_state: the middleware {keeper.name} cannot load its state: "
            f"{type(error).__name__}: {error}"
        ) from error
    finally:
        turn.end()
