"""The actions of `vel toolbox`. They need the settings and no database."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agents.conf import vel_settings
from sandbox.errors import SandboxError
from sandbox.toolbox import Toolbox, ToolboxError, mismatch
from sandbox.toolbox_build import IfPresent, ToolboxRequest, create_toolbox
from sandbox.toolbox_contents import verify_toolbox
from sandbox.toolbox_environment import PipFailed
from sandbox.toolbox_find import find_toolbox, toolbox_names
from sandbox.toolbox_store import open_store
from velproject.cli.console import new_console
from velproject.cli.errors import FAILED, OK
from velproject.cli.terminal import one_line, visible


def create(
    *,
    name: str,
    requirements: tuple[str, ...],
    files: tuple[Path, ...],
    index_url: str,
    allow_source: bool,
    replace: bool,
    if_missing: bool,
) -> None:
    """Build it, and say what it holds. What pip said is shown when it failed."""
    if_present = IfPresent.KEEP if if_missing else IfPresent.REFUSE
    request = ToolboxRequest(name, requirements, files, index_url, allow_source)
    toolbox, built = build(request, IfPresent.REPLACE if replace else if_present)
    print(f"{'Built' if built else 'Kept'} {summary(toolbox)}")


def build(request: ToolboxRequest, if_present: IfPresent) -> tuple[Toolbox, bool]:
    """`create_toolbox` on this host, with its progress and pip's last words on standard error."""
    console = new_console(stderr=True)

    def note(line: str) -> None:
        console.print(visible(line), style="dim")

    try:
        return create_toolbox(vel_settings().toolboxes, request, if_present, note)
    except PipFailed as error:
        console.print(visible(error.output), style="dim")
        raise


def list_toolboxes(*, as_json: bool) -> None:
    """One line each; one that cannot be used says why."""
    console = new_console()
    for name in toolbox_names(vel_settings().toolboxes):
        try:
            toolbox = find_toolbox(vel_settings().toolboxes, name)
            problem = mismatch(toolbox)
        except SandboxError as error:
            if as_json:
                print(json.dumps({"name": name, "problems": [str(error)]}))
            else:
                console.print(f"{name}  broken: {one_line(str(error), 300)}", style="red")
            continue
        if as_json:
            print(json.dumps(as_data(toolbox, [problem] if problem else [])))
        else:
            console.print(summary(toolbox) + (f"  broken: {problem}" if problem else ""))


def show(*, name: str, as_json: bool) -> int:
    """Everything in it; 1 when it is not what was built, or does not fit this host's Python."""
    toolbox = find_toolbox(vel_settings().toolboxes, name)
    problems = verify_toolbox(toolbox)
    if as_json:
        print(json.dumps(as_data(toolbox, problems)))
        return FAILED if problems else OK
    console = new_console()
    console.print(summary(toolbox), style="bold")
    console.print(f"Asked for: {one_line(', '.join(toolbox.requirements), 1000)}")
    console.print(f"Built {toolbox.built_at} for Python {toolbox.python} ({toolbox.abi})")
    console.print(f"Lies in {toolbox.environment}, sha256 {toolbox.digest}")
    for distribution, version in toolbox.distributions:
        console.print(f"  {one_line(distribution)} {one_line(version)}")
    for problem in problems:
        console.print(f"Broken: {visible(problem)}", style="red")
    return FAILED if problems else OK


def remove(*, name: str) -> None:
    """Take the name away; say so when runs still use what it named."""
    base = vel_settings().toolboxes
    if not base.is_dir():
        raise ToolboxError(f"There is no toolbox {name!r} on this host, and no other.")
    with open_store(base) as store:
        gone = store.remove(name)
    print(
        f"{name} is removed."
        if gone
        else f"{name} is removed for new runs. Runs that use it keep it; the next `vel toolbox "
        "create` or `remove` after their end clears it away."
    )


def summary(toolbox: Toolbox) -> str:
    packages = ", ".join(f"{name} {version}" for name, version in of_packages(toolbox))
    return f"{toolbox.name}  {toolbox.size / 1e6:.0f} MB  {one_line(packages, 200)}"


def of_packages(toolbox: Toolbox) -> list[tuple[str, str]]:
    """(name, version) of what was asked for."""
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
