"""A thread keeps its files: a caller with other files is refused."""

from __future__ import annotations

from pathlib import Path

from agents.models import Run, Thread
from agents.services.errors import Conflict
from agents.settings import DataSettings
from sandbox.own_directory.rules import FileRules


def check_working_directory(thread: Thread, named: str) -> None:
    """Raise `Conflict` if `named`, an absolute path, is not the thread's working directory.

    An empty path means that the thread keeps its own.
    """
    if not named or named == thread.workspace_path:
        return
    here = thread.workspace_path or _own_directory(thread)
    advice = (
        f"or name {thread.workspace_path} to continue there"
        if thread.workspace_path
        else "or name no working directory to continue there"
    )
    raise Conflict(
        f"The session {_name(thread)} works in {here}, not in {named}. "
        f"Use another session id to work in {named}, {advice}.",
        code="other_directory",
    )


def check_sandbox(thread: Thread, sandbox: bool) -> None:
    """Raise `Conflict` if the caller and the thread's last run differ in having a sandbox.

    A run without a sandbox has its files in the database and cannot see those of a directory.
    """
    last = Run.objects.filter(thread=thread).select_related("agent_version").order_by("number")
    previous = last.last() or thread.forked_from
    if previous is None or bool(previous.spec["sandbox"]) == sandbox:
        return
    if sandbox:
        raise Conflict(
            f"The session {_name(thread)} works without a sandbox, with its files in the "
            "database. An agent with a sandbox does not see them. Use another session id, or "
            "continue without a sandbox (--no-sandbox, sandbox=False).",
            code="other_directory",
        )
    raise Conflict(
        f"The session {_name(thread)} works in a sandbox, with its files in "
        f"{thread.workspace_path or _own_directory(thread)}. An agent without a sandbox does not "
        "see them. Use another session id, or continue with a sandbox.",
        code="other_directory",
    )


def _own_directory(thread: Thread) -> Path:
    return DataSettings.now().workspaces / thread.pk / "workspace"


def _name(thread: Thread) -> str:
    return repr(thread.key or thread.pk)


def file_rules(thread: Thread) -> FileRules:
    """Return the rules of the thread for files in its own directory."""
    return FileRules(**{name: tuple(patterns) for name, patterns in thread.workspace_rules.items()})
