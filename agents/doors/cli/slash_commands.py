"""Commands of an interactive session, such as `/cost`. They never reach the model.

Features list theirs as `cli.SLASH_COMMANDS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # features import this file before Django is set up
    from django.contrib.auth.models import User


class Session(Protocol):
    """The part of a session that slash commands read and change."""

    owner: User

    @property
    def agent(self) -> str:
        """The slug of the session's agent. Its row exists only after the first task."""

    @property
    def thread(self) -> str | None:
        """The id of the session's thread, or None before its first task."""

    def say(self, text: str, style: str = "") -> None:
        """Print lines. Control characters become visible."""

    def use_thread(self, thread: str) -> None:
        """Continue another thread of the owner."""


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A command. `run` gets the session and the rest of the line.

    `run` raises `ServiceError` or `CliError` for an error, which the session prints as one line.
    """

    name: str
    """With the slash."""
    usage: str
    """The arguments, such as `[NAME]`, or an empty text."""
    help: str
    run: Callable[[Session, str], None]
    during_task: Callable[[Session], str] | None = None
    """Runs the command, without arguments, when a person types it during a task; None: the command
    waits for the prompt. Called in a thread. Returns a line to show, and raises as `run` does."""
    hint: str = ""
    """What `during_task` does with a task that waits, such as `sends the first one now`."""
