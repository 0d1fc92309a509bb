"""`vel toolbox`: Python environments for agents."""

from __future__ import annotations

from pathlib import Path

import click

from velproject.cli.boot import perform
from velproject.cli.options import json_option


@click.group(short_help="Build Python environments that agents can use.")
def toolbox() -> None:
    """Python environments that you build and agents only read.

    They lie on this host below the data directory. Name one in an agent, or with `--toolbox`.
    """


@toolbox.command("create")
@click.argument("name")
@click.argument("requirements", metavar="PACKAGE…", nargs=-1)
@click.option(
    "-r",
    "--requirement",
    "files",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    multiple=True,
    help="Take requirements from this file; it may hold hashes, and no options.",
)
@click.option("--index-url", metavar="URL", default="", help="A package index; else pip's own.")
@click.option(
    "--allow-source",
    is_flag=True,
    help="Let packages be built from source. That runs their code as you, outside of any sandbox.",
)
@click.option("--replace", is_flag=True, help="Build it again; runs keep the old one to their end.")
@click.option("--if-missing", is_flag=True, help="Do nothing when it is there and usable.")
def create(
    name: str,
    requirements: tuple[str, ...],
    files: tuple[Path, ...],
    index_url: str,
    allow_source: bool,
    replace: bool,
    if_missing: bool,
) -> int:
    """Build the toolbox NAME with wheels of the given packages.

    For example: vel toolbox create data pandas matplotlib openpyxl pypdf
    """
    if replace and if_missing:
        raise click.UsageError("--replace and --if-missing exclude each other.")
    return perform(
        "commands.toolbox:create",
        prepare=False,
        name=name,
        requirements=requirements,
        files=files,
        index_url=index_url,
        allow_source=allow_source,
        replace=replace,
        if_missing=if_missing,
    )


@toolbox.command("list")
@json_option
def list_toolboxes(as_json: bool) -> int:
    """Show the toolboxes of this host."""
    return perform("commands.toolbox:list_toolboxes", prepare=False, as_json=as_json)


@toolbox.command("show")
@click.argument("name")
@json_option
def show(name: str, as_json: bool) -> int:
    """Show what NAME holds, and whether it is still what was built."""
    return perform("commands.toolbox:show", prepare=False, name=name, as_json=as_json)


@toolbox.command("remove")
@click.argument("name")
def remove(name: str) -> int:
    """Remove NAME; runs that are using it keep it to their end."""
    return perform("commands.toolbox:remove", prepare=False, name=name)
