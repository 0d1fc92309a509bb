"""The state of an interactive session: its agent, its options and its thread."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.doors.cli.errors import CliError
from agents.doors.cli.slash_commands import Session
from agents.models import Thread
from agents.selectors.visible import threads_for
from agents.services.errors import NotFound
from velproject.cli.commands.runs.conversation import Conversation
from velproject.cli.commands.runs.session import resuming
from velproject.cli.commands.runs.task_flags import agent_slug

if TYPE_CHECKING:
    from velproject.cli.commands.runs.session.prompt import Prompt
    from velproject.cli.commands.runs.session.shell import Ran


class InteractiveSession(Session):
    """The agent, the options and the thread of a session, for slash commands."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.driver = conversation.driver
        self.owner = conversation.driver.owner
        self._own_options = conversation.options
        """The options of the command line, or None if it named an agent."""
        self.has_ended = False
        self.prompt: Prompt | None = None
        """The prompt, in a terminal that can edit lines."""
        self.ran: Ran | None = None
        """The last command of the person's shell."""

    @property
    def agent(self) -> str:
        return self.conversation.request.agent

    @property
    def thread(self) -> str | None:
        request = self.conversation.request
        if request.thread is not None or request.key is None:
            return request.thread
        found = threads_for(self.owner).filter(key=request.key).values_list("pk", flat=True)
        return found.first()

    @property
    def own_directory(self) -> Path | None:
        """The directory of --workspace in which the agent works, or None."""
        thread = self.thread
        path = self.conversation.request.workspace_path
        if thread is not None:
            own = threads_for(self.owner).filter(pk=thread)
            path = own.values_list("workspace_path", flat=True).first() or ""
        return Path(path) if path else None

    def say(self, text: str, style: str = "") -> None:
        self.driver.display.note(text, style)

    def use_thread(self, thread: str) -> None:
        row = threads_for(self.owner).select_related("agent").filter(pk=thread).first()
        if row is None:
            raise NotFound("There is no such session.")
        conversation = self.conversation
        slug = row.agent.slug
        is_own = slug == agent_slug(self.owner)
        if is_own and self._own_options is None:
            # The flags define its agent, and another `vel` may have changed it since.
            raise CliError(
                "That session uses the flags of the command line. "
                "Start `vel` without --agent to continue it."
            )
        if is_own and self._own_options is not None:
            resuming.check_files(row, sandbox=not self._own_options["no_sandbox"])
        conversation.options = self._own_options if is_own else None
        conversation.request = self._fresh(agent=slug, thread=row.pk)
        conversation.waiting = None

    def use_agent(self, slug: str) -> None:
        """Start a new session with another agent.

        The options of the command line apply only to the user's own agent, not to other agents.
        """
        is_own = slug == agent_slug(self.owner)
        self.conversation.options = self._own_options if is_own else None
        self.conversation.request = replace(
            self.conversation.request, agent=slug, thread=None, key=None
        )
        self.conversation.waiting = None

    def _fresh(self, **changes: Any) -> Any:
        """Return a request that keeps the directories of a stored thread."""
        return replace(
            self.conversation.request,
            key=None,
            workspace_path="",
            workspace_rules=None,
            skill_directories=None,
            context={},
            **changes,
        )

    def clear(self) -> None:
        """Start a new session with the same agent."""
        self.conversation.request = replace(self.conversation.request, thread=None, key=None)
        self.conversation.waiting = None
        self.say("Started a new session.", "dim")

    def end(self) -> None:
        """End the session after this line."""
        self.has_ended = True

    def stored_thread(self) -> Thread:
        """Return the row of the thread. Raises `CliError` before the first task."""
        row = threads_for(self.owner).filter(pk=self.thread).first() if self.thread else None
        if row is None:
            raise CliError("This session has no task yet.")
        return row
