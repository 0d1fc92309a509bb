"""`vel TASK` and `vel run TASK`: one task, or a session of several."""

from __future__ import annotations

import json
import os
import re
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import click

from velproject.cli.boot import perform
from velproject.cli.options import persist_option
from velproject.cli.prompting import interruptible

PROVIDERS = ["anthropic", "openai", "openai-responses", "openai-chat", "google", "scripted"]
TASK_BYTES = 10_000_000
"""What is read from standard input at most; the message's own limit is checked afterwards."""
SCHEMA_BYTES = 1_000_000

_OF_THE_AGENT = (
    *("provider", "model", "fallback", "no_sandbox", "toolbox", "approve"),
    *("max_turns", "max_cost", "timeout"),
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
    """NAME=URL, or NAME=env:VARIABLE for a URL that should not stand in the command line.

    No error shows a value: it may hold a password wherever it was mistyped.
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
    """A JSON Schema in a file. What it may hold is checked with the rest of the request."""
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
    """NAME=VALUE; the values are texts."""
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
    """PROVIDER:MODEL; which there may be is checked with the rest of the agent."""
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
    **options: Any,
) -> int:
    """Give an agent a task, or, without one, a session of several."""
    given = [name for name in _OF_THE_AGENT if options[name]] + ["database"] * bool(databases)
    if agent is not None and given:
        flags = ", ".join("--" + name.replace("_", "-") for name in given)
        raise click.UsageError(f"{flags}: with --agent its own settings count; leave them out.")
    if options["toolbox"] and options["no_sandbox"]:
        raise click.UsageError("--toolbox is for commands, and with --no-sandbox there are none.")
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
    return perform(
        "commands.runs.run:run",
        persist=persist,
        task=task,
        agent=agent,
        workspace=workspace,
        allow_write=allow_write,
        protect=protect,
        skills=skills,
        uploads=uploads,
        session=session,
        databases=databases,
        output_schema=output_schema,
        context=context,
        as_json=as_json,
        options=options,
    )
