"""`vel TASK` and `vel run TASK`: one task, or a session of several."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import click

from agents.doors.cli.boot import again, database
from agents.doors.cli.errors import FAILED, OK, WAITING, CliError
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import persist_option
from agents.doors.cli.prompting import interruptible
from agents.doors.cli.terminal import one_line

with late_imports:
    from django.contrib.auth.models import User

    from agents.doors.cli.console import new_console
    from agents.doors.cli.local_user import local_user
    from agents.kernel import row_hooks
    from agents.middleware.definition_checks import check_named_tools
    from agents.middleware.registry import known_tool_names
    from agents.models import Run
    from agents.providers.registry import get_provider
    from agents.selectors.visible import agents_for, runs_for
    from agents.services.agent_definitions.actions import default_provider
    from agents.services.agent_definitions.settings_places import default_model_problem, settings_of
    from agents.services.errors import Conflict, InvalidRequest, NotFound, ServiceError
    from agents.services.runs.start import RunRequest
    from agents.settings import DataSettings
    from agents.spec import AgentSpec
    from agents.states import ACTIVE_RUNS
    from sandbox.errors import SandboxSetupError
    from sandbox.host_paths import writable_directory
    from sandbox.linux.probe import check_host
    from sandbox.own_directory.rules import FileRules
    from sandbox.toolboxes.find import hold_toolbox
    from sandbox.workspace import own_directory_account
    from velproject.cli.commands.runs.drive import Driver
    from velproject.cli.commands.runs.instructions import instructions_of
    from velproject.cli.commands.runs.task_flags import (
        AgentOptions,
        agent_slug,
        opened_uploads,
        sealed_databases,
        start_run,
    )

GREETING = "Type what the agent should do. `exit` ends the session, `clear` begins a new one."


PROVIDERS = ["anthropic", "openai", "openai-responses", "openai-chat", "google", "scripted"]
TASK_BYTES = 10_000_000
"""The most bytes that are read from standard input. The message has its own limit later."""
SCHEMA_BYTES = 1_000_000

_OF_THE_AGENT = (
    *("provider", "model", "fallback", "profile", "no_sandbox", "toolbox", "approve"),
    *("max_turns", "max_cost", "timeout", "no_instructions", "accept_findings"),
)


class Dollars(click.ParamType):
    """A positive amount of US dollars."""

    name = "usd"

    def convert(self, value: Any, param: Any, ctx: Any) -> Decimal:
        text = str(value)
        if not re.fullmatch(r"\d{1,6}(\.\d{1,6})?", text) or not Decimal(text):
            self.fail(f"{text!r} is no amount: write US dollars, as 0.50.", param, ctx)
        return Decimal(text)


def read_databases(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Parse NAME=URL, or NAME=env:VARIABLE for a URL that the command line should not show.

    No error shows a value: any part of it may be a mistyped password.
    """
    found: dict[str, str] = {}
    for value in values:
        name, equals, url = value.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,62}", name):
            raise click.BadParameter(
                "write NAME=URL, as shop=sqlite:///shop.db (a name of letters, digits, _ and -)."
            )
        if name in found:
            raise click.BadParameter(f"{name} is given twice.")
        if url.startswith("env:"):
            variable = url.removeprefix("env:")
            url = os.environ.get(variable, "").strip()
            if not url:
                where = variable if re.fullmatch("[A-Za-z0-9_]{1,100}", variable) else "variable"
                raise click.BadParameter(f"{name}: there is no {where} in the environment.")
        if not re.match(r"[a-z][a-z0-9+]*:", url):
            raise click.BadParameter(f"{name}: the URL has no scheme, as postgresql://host/name.")
        found[name] = url
    return tuple(found.items())


def read_schema(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> dict[str, Any] | None:
    """Read a JSON Schema from a file. The check of the request validates its content."""
    if value is None:
        return None
    try:
        with Path(value).open("rb") as file:
            schema = json.loads(file.read(SCHEMA_BYTES + 1))
    except OSError as error:
        raise click.BadParameter(f"{value!r} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"{value!r} holds no JSON: {error}.") from None
    if not isinstance(schema, dict):
        raise click.BadParameter(f"{value!r} holds no JSON Schema, which is an object.")
    return schema


def read_context(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    """Parse NAME=VALUE; the values are texts."""
    found: dict[str, str] = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{value!r}: write NAME=VALUE, as customer=Acme.")
        if name in found:
            raise click.BadParameter(f"{name} is given twice.")
        found[name] = text
    return found


def read_fallbacks(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Parse PROVIDER:MODEL. The check of the agent validates the names."""
    found = []
    for value in values:
        provider, colon, model = value.partition(":")
        if not colon or not provider or not model:
            raise click.BadParameter(f"{value!r}: write PROVIDER:MODEL, as openai:gpt-6.2-sol.")
        found.append((provider, model))
    return tuple(found)


@click.command(short_help="Give an agent a task (the same as `vel TASK`).")
@click.argument("task", required=False)
@click.option("--agent", metavar="SLUG", help="Use this agent of the database as its team made it.")
@click.option("--model", metavar="NAME", help="The language model; else the provider's default.")
@click.option("--provider", type=click.Choice(PROVIDERS), help="Who serves the model.")
@click.option(
    "--fallback",
    metavar="PROVIDER:MODEL",
    multiple=True,
    callback=read_fallbacks,
    help="Goes on while the model is down; repeat for up to three.",
)
@click.option(
    "--skills",
    metavar="DIR",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A directory of skills that the agent has; repeat for several.",
)
@click.option(
    "--workspace",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="The agent works in this directory, which must exist. Else in its own.",
)
@click.option(
    "--allow-write",
    metavar="PATTERN",
    multiple=True,
    help="A protected file of --workspace that the agent may change, as .github; repeat.",
)
@click.option(
    "--protect",
    metavar="PATTERN",
    multiple=True,
    help="A file of --workspace that the agent must not change, as deploy.sh; repeat.",
)
@click.option(
    "--profile",
    type=click.Choice(["full", "sandbox_only"]),
    help="Its tools: all of them, or commands in the sandbox only (docs/sandbox-only.md).",
)
@click.option("--no-sandbox", is_flag=True, help="Files in the database, no commands.")
@click.option(
    "--database",
    "databases",
    metavar="NAME=URL",
    multiple=True,
    callback=read_databases,
    help="A database that the agent may read; NAME=env:VARIABLE keeps the URL out of the command.",
)
@click.option("--toolbox", metavar="NAME", help="Its Python has what this toolbox holds.")
@click.option("--no-instructions", is_flag=True, help="Do not use the directory's AGENTS.md.")
@click.option("--accept-findings", is_flag=True, help="Use an AGENTS.md that the scanner suspects.")
@click.option("--approve", metavar="TOOL", multiple=True, help="Ask before this tool runs.")
@click.option(
    "--upload",
    "uploads",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A file that goes with the task, read-only for the agent; repeat for several.",
)
@click.option("--session", metavar="KEY", help="Go on with the session of this name, or begin it.")
@persist_option
@click.option("--max-turns", type=click.IntRange(1, 100_000), help="Model calls at most.")
@click.option("--max-cost", type=Dollars(), help="US dollars at most.")
@click.option("--timeout", type=click.IntRange(1), help="Seconds of wall time at most.")
@click.option(
    "--output-schema",
    metavar="FILE",
    callback=read_schema,
    help="The answer is JSON that fits the JSON Schema in this file; only it goes to output.",
)
@click.option(
    "--context",
    metavar="NAME=VALUE",
    multiple=True,
    callback=read_context,
    help="What {{context.NAME}} stands for in the agent's prompt; repeat for several.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one event a line as JSON.")
def run(
    task: str | None,
    persist: Path | None,
    workspace: Path | None,
    allow_write: tuple[str, ...],
    protect: tuple[str, ...],
    skills: tuple[Path, ...],
    uploads: tuple[Path, ...],
    session: str | None,
    agent: str | None,
    databases: tuple[tuple[str, str], ...],
    output_schema: dict[str, Any] | None,
    context: dict[str, str],
    as_json: bool,
    **flags: Any,
) -> int:
    """Give an agent a task, or, without one, start a session of several tasks."""
    given = [name for name in _OF_THE_AGENT if flags[name]] + ["database"] * bool(databases)
    if agent is not None and given:
        names = ", ".join("--" + name.replace("_", "-") for name in given)
        raise click.UsageError(f"{names}: with --agent its own settings count; leave them out.")
    if flags["toolbox"] and flags["no_sandbox"]:
        raise click.UsageError("--toolbox is for commands, and with --no-sandbox there are none.")
    if flags["profile"] == "sandbox_only" and flags["no_sandbox"]:
        raise click.UsageError("--profile sandbox_only needs the sandbox: leave --no-sandbox out.")
    if flags["profile"] == "sandbox_only" and databases:
        raise click.UsageError(
            "--profile sandbox_only has no tools for databases: leave --database out."
        )
    if workspace is not None and flags["no_sandbox"]:
        raise click.UsageError("--workspace is for the sandbox: leave out it or --no-sandbox.")
    if workspace is not None and workspace.exists() and not workspace.is_dir():
        raise click.UsageError(f"--workspace {workspace} is a file: name a directory.")
    if (allow_write or protect) and workspace is None and session is None:
        raise click.UsageError("--allow-write and --protect are for --workspace: name a directory.")
    if session is not None and not 0 < len(session) <= 200:
        raise click.UsageError("--session: the key must have 1 to 200 characters.")
    if task == "-":
        with interruptible():
            task = sys.stdin.read(TASK_BYTES)
    if task is not None and not task.strip():
        raise click.UsageError("The task is empty: say what the agent should do.")
    for directory in skills:
        if not directory.is_dir():
            what = "is no directory" if directory.exists() else "is not there"
            raise click.UsageError(f"--skills {directory} {what}: name a directory of skills.")
    for file in uploads:
        if not file.is_file():
            what = "is no file" if file.exists() else "is not there"
            raise click.UsageError(f"--upload {file} {what}: name a file.")
    with database(persist):
        # The URLs are encrypted from this line on.
        flags["databases"] = sealed_databases(databases)
        flags["instructions"] = ""
        options = cast("AgentOptions", flags)
        owner = local_user()
        workspace_path = str(workspace_directory(workspace)) if workspace is not None else ""
        rules = None
        if workspace is not None or allow_write or protect:
            rules = file_rules(allow_write, protect)
        directories = skill_directories(skills, workspace_path)
        if agent is None:
            check_options(options)
            if not flags["no_instructions"]:
                place = Path(workspace_path) if workspace is not None else Path.cwd()
                accepted = flags["accept_findings"]
                options["instructions"] = instructions_of(place, accept_findings=accepted)
            warn_without_sandbox(options)
        elif not agents_for(owner).filter(slug=agent).exists():
            raise NotFound(unknown_agent(agent, owner))
        driver = Driver(owner, as_json=as_json)
        request = RunRequest(
            agent=agent or agent_slug(owner),
            message="",
            key=session,
            executor=driver.worker.executor,
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
        """Run one task in the current thread, or in a new one. Return the exit code of its run."""
        started = self._start(replace(self._request, message=message))
        self._uploads = ()  # the first task has sent them
        if self._request.key is None:
            self._request = replace(self._request, thread=started.thread_id)
        return self._driver.drive(started)

    def hold(self) -> int:
        """Read tasks until `exit` or the end of input."""
        import readline  # noqa: F401, PLC0415  # input() edits lines once it is imported

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
        """Run a task, and print a refusal: it does not end a session with a person."""
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
    """Refuse options that would make the run fail later, before anything is stored."""
    # Knowing all tools takes 30 ms, which most commands need not.
    if options["approve"] and (unknown := sorted(set(options["approve"]) - known_tool_names())):
        raise CliError(
            f"--approve: there is no tool {one_line(unknown[0])!r}; "
            f"the tools are {', '.join(sorted(known_tool_names()))}."
        )
    if options["approve"]:
        given = {"profile": options["profile"]} if options["profile"] else {}
        spec = AgentSpec.model_validate({"name": "", "slug": "", **given})
        try:
            check_named_tools(spec, [("--approve", tool) for tool in options["approve"]])
        except InvalidRequest as error:
            raise CliError(error.message) from None
    settings = DataSettings.now()
    if options["toolbox"]:
        # raises ToolboxError if it is unusable
        hold_toolbox(settings.toolboxes, options["toolbox"]).release()
    if not options["provider"] and not options["model"] and (problem := default_model_problem()):
        raise CliError(problem, exit_code=FAILED)
    # Raises ProviderError for a missing key and for a provider that is not installed.
    provider = options["provider"] or default_provider()
    get_provider(provider, settings_of(provider))


def warn_without_sandbox(options: AgentOptions) -> None:
    """Warn if commands cannot run: file tools and the model still work."""
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
    """Return the absolute path of the directory.

    Refuses, before any model call, a directory that does not exist, or in which commands cannot or
    must not work.
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
    """Return the rules for paths that the agent may also change, and for protected ones."""
    try:
        return FileRules(tuple(allow_write), tuple(protect))
    except SandboxSetupError as error:
        raise CliError(f"--allow-write, --protect: {error}") from error


def skill_directories(given: Sequence[Path], workspace_path: str) -> tuple[str, ...]:
    """Return the absolute paths without links. Refuses directories that no run could use."""
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
    row_hooks.check_directories(unique, workspace_path)
    return unique


def unknown_agent(slug: str, owner: User) -> str:
    known = ", ".join(agents_for(owner).values_list("slug", flat=True)[:10])
    hint = f"there are {known}" if known else "there are none yet (vel up shows how to make one)"
    return f"There is no agent {one_line(slug)!r} that you may use; {hint}."
