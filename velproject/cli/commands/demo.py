"""`vel demo`: a full task from data to report, which needs no key and no network."""

from __future__ import annotations

from pathlib import Path

import click

from agents.doors.cli.boot import with_database
from agents.doors.cli.errors import FAILED, OK
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.terminal import one_line

with late_imports:
    from agents.demo.task import TOOLBOX, TOOLBOX_PACKAGES
    from agents.doors.cli.local_user import local_user
    from agents.models import ApprovalRequest, Run
    from agents.services.approvals.decisions import DecisionRequest
    from agents.services.demo import demo_task, read_demo_outputs, start_demo_run
    from agents.settings import DataSettings
    from agents.states import Decision
    from sandbox.errors import SandboxError
    from sandbox.linux.probe import check_host
    from sandbox.toolboxes.build import IfPresent, ToolboxRequest, create_toolbox
    from velproject.cli.commands.runs.display import Display
    from velproject.cli.commands.runs.drive import Driver


@click.command(short_help="Run the demo: a real analysis. Needs no key.")
@click.option(
    "--output",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("demo-output"),
    show_default=True,
    help="Directory for the report and the chart. Created if missing.",
)
@click.option("--no-toolbox", is_flag=True, help="Do not build the toolbox if it is missing.")
@with_database
def demo(output: Path, no_toolbox: bool) -> int:
    """Let the demo agent analyse four years of weather in the sandbox.

    Without ANTHROPIC_API_KEY, an offline scripted model is used, and a message says so. The agent
    computes with pandas in the toolbox `demo`, which is built on first use, or with the standard
    library. Exits with 0 only if the run is completed and the report and its pictures exist.
    """
    output.mkdir(parents=True, exist_ok=True)
    owner = local_user()
    driver = Driver(owner, stand_in=approve)
    try:
        if not no_toolbox and check_host().usable:
            ensure_toolbox(driver.display)
        run = start_demo_run(owner, executor=driver.worker.executor, source="cli")
        code = driver.drive(run)
    finally:
        driver.close()
    return code if code != OK else keep_outputs(run, output, driver.display)


def approve(request: ApprovalRequest) -> DecisionRequest:
    """Approve the request of the demo's own agent, if no terminal is attached."""
    return DecisionRequest(decision=Decision.APPROVE, digest=request.digest)


def ensure_toolbox(display: Display) -> None:
    """Build the demo's toolbox if it is missing. Without the toolbox, the demo runs, too."""
    # On a machine without a network, the demo should not wait for pip's retries.
    request = ToolboxRequest(TOOLBOX, TOOLBOX_PACKAGES, impatient=True)
    try:
        create_toolbox(DataSettings.now().toolboxes, request, IfPresent.KEEP, display.note)
    except (SandboxError, OSError) as error:
        display.note(
            f"No toolbox, so the demo uses the standard library: {one_line(str(error))} "
            f"(vel toolbox create {TOOLBOX} {' '.join(TOOLBOX_PACKAGES)} shows more)",
            "yellow",
        )


def keep_outputs(run: Run, output: Path, display: Display) -> int:
    """Copy the files of the run to `output`. Return `FAILED` if a file is missing or empty."""
    found = read_demo_outputs(run)
    for name, data in found.items():
        (output / name).write_bytes(data)
        display.note(f"{name}: {(output / name).absolute()}", "green")
    display.note(f"All events of the run: vel runs show {run.id}")
    missing = [name for name in demo_task(run).outputs if name not in found]
    if missing:
        display.note(f"The run ended without {' and '.join(missing)}.", "bold red")
        return FAILED
    return OK


COMMANDS = (demo,)
