"""`vel demo`: a whole task from its data to a report, also without a key and a network."""

from __future__ import annotations

from pathlib import Path

import click

from velproject.cli.boot import perform
from velproject.cli.options import persist_option


@click.command(short_help="Run the demo: a real analysis, also without a key.")
@click.option(
    "--output",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("demo-output"),
    show_default=True,
    help="Copy the report and the chart here; it is made if it is not there.",
)
@click.option("--no-toolbox", is_flag=True, help="Do not build its toolbox; use it if it is there.")
@persist_option
def demo(output: Path, no_toolbox: bool, persist: Path | None) -> int:
    """Let the demo agent analyse four years of weather in the sandbox.

    Without ANTHROPIC_API_KEY an offline scripted model plays it, and says so. It computes with
    pandas in the toolbox `demo`, which is built on first use, or else with the standard library.
    Ends with 0 only when the run was completed and the report and its pictures are there.
    """
    return perform(
        "commands.demo:demo", persist=persist, output=output, build_toolbox=not no_toolbox
    )
