"""`vel toolbox`: Python environments for agents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from agents.doors.cli.boot import database, with_settings
from agents.doors.cli.errors import FAILED, OK
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import json_option
from agents.doors.cli.terminal import one_line, visible

with late_imports:
    from agents.doors.cli.console import new_console
    from agents.settings import DataSettings
    from sandbox.errors import SandboxError
    from sandbox.toolboxes.build import IfPresent, ToolboxRequest, create_toolbox
    from sandbox.toolboxes.contents import verify_toolbox
    from sandbox.toolboxes.environment import PipFailed
    from sandbox.toolboxes.find import find_toolbox, toolbox_names
    from sandbox.toolboxes.store import open_store
    from sandbox.toolboxes.toolbox import Toolbox, ToolboxError, mismatch


@click.group(short_help="Build Python environments that agents can use.")
def toolbox() -> None:
    """Manage Python environments that you build and that agents use read-only.

    They are stored on this host. Select one in an agent's settings, or with `--toolbox`.
    """


@toolbox.command("create")
@click.argument("name")
@click.argument("requirements", metavar="[PACKAGE…]", nargs=-1)
@click.option(
    "-r",
    "--requirement",
    "files",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    multiple=True,
    help="Requirements file; it may contain hashes, but no options.",
)
@click.option("--index-url", metavar="URL", default="", help="Package index. Default: pip's index.")
@click.option(
    "--allow-source",
    is_flag=True,
    help="Build packages from source. This runs their code as you, outside the sandbox.",
)
@click.option("--replace", is_flag=True, help="Build it again. Active runs keep the old one.")
@click.option("--if-missing", is_flag=True, help="Do nothing if it exists and works.")
def create(
    name: str,
    requirements: tuple[str, ...],
    files: tuple[Path, ...],
    index_url: str,
    allow_source: bool,
    replace: bool,
    if_missing: bool,
) -> None:
    """Build the toolbox NAME with wheels of the given packages.

    For example: vel toolbox create data pandas matplotlib openpyxl pypdf
    """
    if replace and if_missing:
        raise click.UsageError("--replace cannot be combined with --if-missing.")
    with database(prepare=False):
        if_present = IfPresent.KEEP if if_missing else IfPresent.REFUSE
        request = ToolboxRequest(name, requirements, files, index_url, allow_source)
        found, built = _build(request, IfPresent.REPLACE if replace else if_present)
        print(f"{'Built' if built else 'Kept'} {summary(found)}")


def _build(request: ToolboxRequest, if_present: IfPresent) -> tuple[Toolbox, bool]:
    """Call `create_toolbox` on this host. Show progress and pip's last lines on standard error."""
    console = new_console(stderr=True)

    def note(line: str) -> None:
        console.print(visible(line), style="dim")

    try:
        return create_toolbox(DataSettings.now().toolboxes, request, if_present, note)
    except PipFailed as error:
        console.print(visible(error.output), style="dim")
        raise


@toolbox.command("list")
@json_option
@with_settings
def list_toolboxes(as_json: bool) -> None:
    """List the toolboxes of this host."""
    console = new_console()
    for name in toolbox_names(DataSettings.now().toolboxes):
        try:
            found = find_toolbox(DataSettings.now().toolboxes, name)
            problem = mismatch(found)
        except SandboxError as error:
            if as_json:
                print(json.dumps({"name": name, "problems": [str(error)]}))
            else:
                console.print(f"{name}  broken: {one_line(str(error), 300)}", style="red")
            continue
        if as_json:
            print(json.dumps(as_data(found, [problem] if problem else [])))
        else:
            console.print(summary(found) + (f"  broken: {problem}" if problem else ""))


@toolbox.command("show")
@click.argument("name")
@json_option
@with_settings
def show(name: str, as_json: bool) -> int:
    """Show the contents of NAME, and whether they have changed since the build."""
    found = find_toolbox(DataSettings.now().toolboxes, name)
    problems = verify_toolbox(found)
    if as_json:
        print(json.dumps(as_data(found, problems)))
        return FAILED if problems else OK
    console = new_console()
    console.print(summary(found), style="bold")
    console.print(f"Requirements: {one_line(', '.join(found.requirements), 1000)}")
    console.print(f"Built {found.built_at} for Python {found.python} ({found.abi})")
    console.print(f"Location: {found.environment}, sha256 {found.digest}")
    for distribution, version in found.distributions:
        console.print(f"  {one_line(distribution)} {one_line(version)}")
    for problem in problems:
        console.print(f"Broken: {visible(problem)}", style="red")
    return FAILED if problems else OK


@toolbox.command("remove")
@click.argument("name")
@with_settings
def remove(name: str) -> None:
    """Remove NAME. Active runs that use it keep it until they end."""
    base = DataSettings.now().toolboxes
    if not base.is_dir():
        raise ToolboxError(f"There is no toolbox {name!r}. This host has no toolboxes.")
    with open_store(base) as store:
        gone = store.remove(name)
    print(
        f"{name} is removed."
        if gone
        else f"{name} is removed for new runs. Active runs keep it. After they end, the next `vel "
        "toolbox create` or `remove` deletes its files."
    )


def summary(toolbox: Toolbox) -> str:
    packages = ", ".join(f"{name} {version}" for name, version in of_packages(toolbox))
    return f"{toolbox.name}  {toolbox.size / 1e6:.0f} MB  {one_line(packages, 200)}"


def of_packages(toolbox: Toolbox) -> list[tuple[str, str]]:
    """Return (name, version) of the packages that the operator requested."""
    return [each for each in toolbox.distributions if each[0] in toolbox.packages]


def as_data(toolbox: Toolbox, problems: list[str]) -> dict[str, Any]:
    return {
        "name": toolbox.name,
        "packages": list(toolbox.packages),
        "requirements": list(toolbox.requirements),
        "distributions": dict(toolbox.distributions),
        "python": toolbox.python,
        "abi": toolbox.abi,
        "built_at": toolbox.built_at,
        "size": toolbox.size,
        "digest": toolbox.digest,
        "environment": str(toolbox.environment),
        "problems": problems,
    }


COMMANDS = (toolbox,)
