"""The action of `vel demo`."""

from __future__ import annotations

from pathlib import Path

from agents.conf import vel_settings
from agents.demo.task import TOOLBOX, TOOLBOX_PACKAGES
from agents.models import ApprovalRequest, Run
from agents.services.approvals import DecisionRequest
from agents.services.demo import demo_task, read_demo_outputs, start_demo_run
from agents.states import Decision
from sandbox.errors import SandboxError
from sandbox.probe import check_host
from sandbox.toolbox_build import IfPresent, ToolboxRequest, create_toolbox
from velproject.cli.commands.runs.display import Display
from velproject.cli.commands.runs.drive import Driver
from velproject.cli.errors import FAILED, OK
from velproject.cli.local_user import local_user
from velproject.cli.terminal import one_line


def demo(*, output: Path, build_toolbox: bool) -> int:
    """Run the demo here and copy what it made into `output`."""
    output.mkdir(parents=True, exist_ok=True)
    owner = local_user()
    driver = Driver(owner, stand_in=approve)
    try:
        if build_toolbox and check_host().usable:
            ensure_toolbox(driver.display)
        run = start_demo_run(owner, executor=driver.host.executor, source="cli")
        code = driver.drive(run)
    finally:
        driver.close()
    return code if code != OK else keep_outputs(run, output, driver.display)


def approve(request: ApprovalRequest) -> DecisionRequest:
    """What the demo was made to ask, where nobody sits at a terminal to answer."""
    return DecisionRequest(decision=Decision.APPROVE, digest=request.digest)


def ensure_toolbox(display: Display) -> None:
    """Build the demo's toolbox unless it is there. Without an index the demo goes on without."""
    # A machine without a network should not be kept waiting.
    request = ToolboxRequest(TOOLBOX, TOOLBOX_PACKAGES, impatient=True)
    try:
        create_toolbox(vel_settings().toolboxes, request, IfPresent.KEEP, display.note)
    except (SandboxError, OSError) as error:
        display.note(
            f"No toolbox, so the demo computes with the standard library: {one_line(str(error))} "
            f"(vel toolbox create {TOOLBOX} {' '.join(TOOLBOX_PACKAGES)} says more)",
            "yellow",
        )


def keep_outputs(run: Run, output: Path, display: Display) -> int:
    """Copy the run's files. `FAILED` unless all are there and none is empty."""
    found = read_demo_outputs(run)
    for name, data in found.items():
        (output / name).write_bytes(data)
        display.note(f"{name}: {(output / name).absolute()}", "green")
    display.note(f"All that happened: vel runs show {run.id}")
    missing = [name for name in demo_task(run).outputs if name not in found]
    if missing:
        display.note(f"The run ended without {' and '.join(missing)}.", "bold red")
        return FAILED
    return OK
