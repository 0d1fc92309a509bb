"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

persist_option = click.option(
    "--persist",
    metavar="PATH",
    type=click.Path(path_type=Path, dir_okay=True),
    help="Keep everything in this SQLite file instead of the default database.",
)

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print only JSON on standard output."
)
