"""The action of `vel demo`."""

from __future__ import annotations

from pathlib import Path

from agents.demo.task import OUTPUT_NAMES
from agents.models import Run
from agents.services.demo import read_demo_outputs, start_demo_run
from velproject.cli.actions.display import Display
from velproject.cli.actions.drive import Driver
from velproject.cli.actions.local_user import local_user
from velproject.cli.errors import FAILED, OK


def demo(*, output: Path) -> int:
    """Run the demo here and copy what it made into `output`."""
    output.mkdir(parents=True, exist_ok=True)
    owner = local_user()
    driver = Driver(owner)
    try:
        run = start_demo_run(owner, executor=driver.host.executor, source="cli")
        code = driver.drive(run)
    finally:
        driver.close()
    return code if code != OK else keep_outputs(run, output, driver.display)


def keep_outputs(run: Run, output: Path, display: Display) -> int:
    """Copy the run's files. `FAILED` unless all are there and none is empty."""
    found = read_demo_outputs(run)
    for name, data in found.items():
        (output / name).write_bytes(data)
        display.note(f"{name}: {(output / name).absolute()}", "green")
    display.note(f"All that happened: vel runs show {run.id}")
    missing = [name for name in OUTPUT_NAMES if name not in found]
    if missing:
        display.note(f"The run ended without {' and '.join(missing)}.", "bold red")
        return FAILED
    return OK
