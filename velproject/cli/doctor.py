"""`vel doctor`: what works on this machine, and how to mend what does not."""

from __future__ import annotations

from pathlib import Path

import click

from velproject.cli.boot import use_database_file
from velproject.cli.options import json_option, persist_option


@click.command(short_help="Check this machine and say how to mend it.")
@persist_option
@json_option
@click.option("--online", is_flag=True, help="Also make one tiny call to the language model.")
def doctor(persist: Path | None, as_json: bool, online: bool) -> int:
    """Check this machine. Ends with 1 where something essential is broken."""
    if persist is not None:
        use_database_file(persist)
    # Imported here: it imports Django, which `vel --help` should not wait for.
    from velproject.cli.commands.machines.doctor import report  # noqa: PLC0415

    return report(as_json=as_json, online=online)
