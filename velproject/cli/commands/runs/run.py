"""`vel TASK` and `vel run TASK`: one task, or a session of several."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, cast

import click

from agents.doors.cli.boot import database
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import persist_option
from agents.kernel.lazy_modules import lazy_modules
from velproject.cli.commands.runs.option_values import (
    PROVIDERS,
    Dollars,
    agent_flags,
    check_together,
    read_context,
    read_databases,
    read_fallbacks,
    read_schema,
)

with lazy_modules:
    from agents.doors.cli import prompting  # only a task from standard input needs it
    from velproject.cli.commands.runs.session import (
        loop,  # only a session without a task needs it
        resuming,
    )

with late_imports:
    from agents.doors.cli.local_user import local_user
    from agents.selectors.visible import agents_for
    from agents.services.errors import NotFound
    from agents.services.runs.start import RunRequest
    from velproject.cli.commands.runs.conversation import Conversation
    from velproject.cli.commands.runs.drive import Driver
    from velproject.cli.commands.runs.instructions import instructions_of
    from velproject.cli.commands.runs.option_checks import (
        check_options,
        default_skill_directories,
        file_rules,
        skill_directories,
        unknown_agent,
        warn_without_sandbox,
        workspace_directory,
    )
    from velproject.cli.commands.runs.task_flags import (
        AgentOptions,
        agent_slug,
        sealed_databases,
    )

TASK_BYTES = 10_000_000
"""The most bytes that are read from standard input. The message has its own limit later."""


@click.command(short_help="Give an agent a task (the same as `vel TASK`).")
@click.argument("task", required=False)
@click.option("--agent", metavar="SLUG", help="Use this agent, with its stored settings.")
@click.option("--model", metavar="NAME", help="Language model. Default: the provider's default.")
@click.option(
    "--provider",
    type=click.Choice(PROVIDERS),
    help="Provider and protocol of the model (docs/guides/providers.md).",
)
@click.option(
    "--fallback",
    metavar="PROVIDER:MODEL",
    multiple=True,
    callback=read_fallbacks,
    help="Model to use if the first is unavailable; repeat for up to three.",
)
@click.option(
    "--skills",
    metavar="DIR",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Directory of skills; repeat for several. Default: ./skills.",
)
@click.option(
    "--workspace",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Existing directory in which the agent works. Default: a new one for the session.",
)
@click.option(
    "--allow-write",
    metavar="PATTERN",
    multiple=True,
    help="Protected file in --workspace that the agent may change; repeat for several.",
)
@click.option(
    "--protect",
    metavar="PATTERN",
    multiple=True,
    help="File in --workspace that the agent must not change; repeat for several.",
)
@click.option(
    "--profile",
    type=click.Choice(["full", "sandbox_only"]),
    help="Tools: all, or only commands in the sandbox (docs/guides/sandbox-only.md).",
)
@click.option(
    "--no-sandbox", is_flag=True, help="Store files in the database. The agent cannot run commands."
)
@click.option(
    "--database",
    "databases",
    metavar="NAME=URL",
    multiple=True,
    callback=read_databases,
    help="Database that the agent may read. NAME=env:VARIABLE hides the URL from other processes.",
)
@click.option("--toolbox", metavar="NAME", help="Toolbox with Python packages for the agent.")
@click.option("--no-instructions", is_flag=True, help="Ignore the directory's AGENTS.md.")
@click.option(
    "--accept-findings",
    is_flag=True,
    help="Use AGENTS.md and ./skills despite findings of the scanner.",
)
@click.option(
    "--approve",
    metavar="TOOL",
    multiple=True,
    help="Ask before each call of this tool; repeat for several.",
)
@click.option(
    "--upload",
    "uploads",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="File to send with the task, read-only; repeat for several.",
)
@click.option("--session", metavar="KEY", help="Continue or start the session with this name.")
@click.option(
    "--continue",
    "goes_on",
    is_flag=True,
    help="Continue your newest session, if possible one of this directory.",
)
@click.option(
    "--resume",
    metavar="[ID]",
    is_flag=False,
    flag_value="",
    help="Continue the session with this ID, or of the run with this ID. Without ID, choose one.",
)
@persist_option
@click.option("--max-turns", type=click.IntRange(1, 100_000), help="Maximum model calls.")
@click.option("--max-cost", type=Dollars(), help="Maximum cost in US dollars.")
@click.option("--timeout", type=click.IntRange(1), help="Maximum time in seconds.")
@click.option(
    "--output-schema",
    metavar="FILE",
    callback=read_schema,
    help="Print only an answer in JSON that matches the JSON Schema in this file.",
)
@click.option(
    "--context",
    metavar="NAME=VALUE",
    multiple=True,
    callback=read_context,
    help="Value of {{context.NAME}} in the agent's prompt; repeat for several.",
)
@click.option("--json", "as_json", is_flag=True, help="Print each event as a line of JSON.")
def run(
    task: str | None,
    persist: Path | None,
    workspace: Path | None,
    allow_write: tuple[str, ...],
    protect: tuple[str, ...],
    skills: tuple[Path, ...],
    uploads: tuple[Path, ...],
    session: str | None,
    goes_on: bool,
    resume: str | None,
    agent: str | None,
    databases: tuple[tuple[str, str], ...],
    output_schema: dict[str, Any] | None,
    context: dict[str, str],
    as_json: bool,
    **flags: Any,
) -> int:
    """Give an agent a task. If TASK is `-`, read it from standard input.

    Without TASK, start a session in which you type several tasks.
    """
    check_together(
        flags, agent=agent, databases=databases, workspace=workspace, session=session,
        rules=(*allow_write, *protect), skills=skills, uploads=uploads, context=context,
        goes_on=["--continue"] * goes_on + ["--resume"] * (resume is not None),
    )  # fmt: skip
    if task == "-":
        with prompting.interruptible():
            task = sys.stdin.read(TASK_BYTES)
    if task is not None and not task.strip():
        raise click.UsageError("The task is empty. Describe a task for the agent.")
    with database(persist):
        # The URLs are encrypted from here on.
        flags["databases"] = sealed_databases(databases)
        flags["instructions"] = ""
        options = cast("AgentOptions", flags)
        owner = local_user()
        workspace_path = str(workspace_directory(workspace)) if workspace is not None else ""
        thread = None
        if goes_on or resume is not None:
            thread = resuming.chosen_thread(owner, resume, workspace_path)
            agent = resuming.agent_of(thread, owner, agent_flags(flags, databases))
            if agent is None:
                resuming.check_files(thread, sandbox=not flags["no_sandbox"])
        rules = None
        if thread is not None:
            workspace_path = ""  # the session keeps its directory and its rules
        elif workspace is not None or allow_write or protect:
            rules = file_rules(allow_write, protect)
        directories = skill_directories(skills, workspace_path, rules)
        if not skills and agent is None and thread is None:
            directories = default_skill_directories(
                owner, session, workspace_path, rules, accept_findings=flags["accept_findings"]
            )
        if agent is None:
            check_options(options)
            if not flags["no_instructions"]:
                own = thread.workspace_path if thread is not None else workspace_path
                place = Path(own) if own else Path.cwd()
                accepted = flags["accept_findings"]
                options["instructions"] = instructions_of(place, accept_findings=accepted)
            warn_without_sandbox(options)
        elif not agents_for(owner).filter(slug=agent).exists():
            raise NotFound(unknown_agent(agent, owner))
        driver = Driver(owner, as_json=as_json)
        request = RunRequest(
            agent=agent or agent_slug(owner),
            message="",
            thread=thread.pk if thread is not None else None,
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
            return conversation.say(task) if task is not None else loop.hold(conversation)
        finally:
            driver.close()
