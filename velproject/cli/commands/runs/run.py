"""The action of `vel TASK`, and of `vel` alone: a session of several tasks."""

from __future__ import annotations

import os
import readline  # noqa: F401  # input() edits lines once it is imported
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User

from agents.conf import vel_settings
from agents.middleware.registry import known_tool_names
from agents.models import Run
from agents.providers.registry import get_provider
from agents.selectors.visible import agents_for, runs_for
from agents.services.agents import default_provider
from agents.services.errors import Conflict, NotFound, ServiceError
from agents.services.model_servers import settings_of
from agents.services.runs import RunRequest
from agents.services.skill_directories import check_skill_directories
from agents.states import ACTIVE_RUNS
from sandbox.errors import SandboxSetupError
from sandbox.host_paths import writable_directory
from sandbox.own_directory.rules import FileRules
from sandbox.probe import check_host
from sandbox.toolbox_find import hold_toolbox
from sandbox.workspace import own_directory_account
from velproject.cli.actions.uploads import opened_uploads
from velproject.cli.boot import again
from velproject.cli.commands.databases import sealed_databases
from velproject.cli.commands.runs.drive import Driver
from velproject.cli.commands.runs.task_flags import AgentOptions, agent_slug, start_run
from velproject.cli.console import new_console
from velproject.cli.errors import FAILED, OK, WAITING, CliError
from velproject.cli.local_user import local_user
from velproject.cli.prompting import interruptible
from velproject.cli.terminal import one_line

GREETING = "Type what the agent should do. `exit` ends the session, `clear` begins a new one."


def run(
    *,
    task: str | None,
    agent: str | None,
    workspace: Path | None,
    allow_write: Sequence[str],
    protect: Sequence[str],
    skills: Sequence[Path],
    uploads: Sequence[Path],
    session: str | None,
    databases: Sequence[tuple[str, str]],
    output_schema: dict[str, Any] | None,
    context: Mapping[str, str],
    as_json: bool,
    options: AgentOptions,
) -> int:
    """Carry out one task, or ask for one after another. The exit code is the last run's.

    `databases` are names and URLs. From here on the URLs are encrypted.
    """
    options["databases"] = sealed_databases(databases)
    owner = local_user()
    workspace_path = str(workspace_directory(workspace)) if workspace is not None else ""
    rules = None
    if workspace is not None or allow_write or protect:
        rules = file_rules(allow_write, protect)
    directories = skill_directories(skills, workspace_path)
    if agent is None:
        check_options(options)
        warn_without_sandbox(options)
    elif not agents_for(owner).filter(slug=agent).exists():
        raise NotFound(unknown_agent(agent, owner))
    driver = Driver(owner, as_json=as_json)
    request = RunRequest(
        agent=agent or agent_slug(owner),
        message="",
        key=session,
        executor=driver.host.executor,
        source="cli",
        workspace_path=workspace_path,
        workspace_rules=rules,
        skill_directories=directories or None,
        output_schema=output_schema,
        context=context,
    )
    conversation = Conversation(driver, request, None if agent else options, uploads)
    try:
        return conversation.say(task) if task is not None else conversation.hold()
    finally:
        driver.close()


class Conversation:
    """Tasks that follow one another in one thread."""

    def __init__(
        self,
        driver: Driver,
        request: RunRequest,
        options: AgentOptions | None,
        uploads: Sequence[Path] = (),
    ) -> None:
        self._driver = driver
        self._uploads = uploads
        self._request = request
        self._options = options

    def say(self, message: str) -> int:
        """One task in the present thread, which the first one begins. The exit code of its run."""
        started = self._start(replace(self._request, message=message))
        self._uploads = ()  # they went with the first one
        if self._request.key is None:
            self._request = replace(self._request, thread=started.thread_id)
        return self._driver.drive(started)

    def hold(self) -> int:
        """Read tasks until `exit` or the end of input."""
        if self._driver.interactive:
            self._driver.display.note(GREETING)
        last = OK
        while (line := self._read()) is not None:
            match line.strip():
                case "":
                    continue
                case "exit":
                    break
                case "clear":
                    self._request = replace(self._request, thread=None, key=None)
                    self._driver.display.note("A new session begins.")
                    continue
                case task:
                    last = self._say_or_explain(task)
                    if last == WAITING and not self._driver.interactive:
                        break
        return last

    def _say_or_explain(self, task: str) -> int:
        """A refusal does not end a session in which a person can say something else."""
        try:
            return self.say(task)
        except ServiceError as error:
            if not self._driver.interactive:
                raise
            self._driver.display.note(error.message, "red")
            return FAILED

    def _read(self) -> str | None:
        try:
            with interruptible():
                if self._driver.interactive:
                    return input("\n> ")
                return sys.stdin.readline() or None
        except (EOFError, KeyboardInterrupt):
            return None

    def _start(self, request: RunRequest) -> Run:
        try:
            with opened_uploads(self._uploads) as files:
                return start_run(request, self._options, self._driver.owner, files)
        except Conflict as error:
            if error.code != "thread_busy" or request.key is None:
                raise
            busy = runs_for(self._driver.owner).filter(
                thread__key=request.key, status__in=ACTIVE_RUNS
            )
            run = busy.first()
            if run is None:
                raise
            raise CliError(
                f"The session {request.key!r} is busy: its run {run.id} is {run.status}. "
                f"Go on with it ({again(f'runs resume {run.id}')}), "
                f"or end it ({again(f'runs cancel {run.id}')})."
            ) from None


def check_options(options: AgentOptions) -> None:
    """Refuse, before anything is stored, what the run would only fail of later."""
    unknown = sorted(set(options["approve"]) - known_tool_names())
    if unknown:
        raise CliError(
            f"--approve: there is no tool {one_line(unknown[0])!r}; "
            f"the tools are {', '.join(sorted(known_tool_names()))}."
        )
    settings = vel_settings()
    if options["toolbox"]:
        hold_toolbox(settings.toolboxes, options["toolbox"]).release()  # ToolboxError if it cannot
    # Raises ProviderError for a missing key and for a provider that is not installed.
    provider = options["provider"] or default_provider()
    get_provider(provider, settings_of(provider))


def warn_without_sandbox(options: AgentOptions) -> None:
    """Say so where commands cannot run: file tools and the model still work."""
    if options["no_sandbox"]:
        return
    report = check_host()
    if not report.usable:
        new_console(stderr=True).print(
            f"No sandbox on this machine, so commands will be refused: {report.problems[0]} "
            "(vel doctor says more; --no-sandbox goes without)",
            style="yellow",
        )


def workspace_directory(given: Path) -> Path:
    """The absolute path of the directory.

    A directory that does not exist, or in which commands cannot or must not work, is refused here,
    before a model is asked.
    """
    place = given.expanduser().resolve()
    try:
        writable_directory(place)
        if not place.exists():
            raise CliError(
                f"--workspace {one_line(str(given))}: {one_line(str(place))} does not exist. "
                "Make it, or name another directory."
            )
        own_directory_account(place)
    except SandboxSetupError as error:
        raise CliError(f"--workspace {one_line(str(given))}: {error}") from error
    return place


def file_rules(allow_write: Sequence[str], protect: Sequence[str]) -> FileRules:
    """What of the directory the agent may change in addition, and what it must not."""
    try:
        return FileRules(tuple(allow_write), tuple(protect))
    except SandboxSetupError as error:
        raise CliError(f"--allow-write, --protect: {error}") from error


def skill_directories(given: Sequence[Path], workspace_path: str) -> tuple[str, ...]:
    """Their absolute paths without links. What no run could use is refused here."""
    places = []
    for directory in given:
        place = directory.expanduser().resolve()
        if not os.access(place, os.R_OK | os.X_OK):
            raise CliError(
                f"--skills {one_line(str(directory))} cannot be read by this account: "
                "change its mode, or name another directory."
            )
        places.append(str(place))
    unique = tuple(dict.fromkeys(places))
    check_skill_directories(unique, workspace_path)
    return unique


def unknown_agent(slug: str, owner: User) -> str:
    known = ", ".join(agents_for(owner).values_list("slug", flat=True)[:10])
    hint = f"there are {known}" if known else "there are none yet (vel up shows how to make one)"
    return f"There is no agent {one_line(slug)!r} that you may use; {hint}."
