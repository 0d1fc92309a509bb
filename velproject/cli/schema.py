"""`vel schema`: the OpenAPI document of the REST API."""

from __future__ import annotations

import click

from velproject.cli.boot import perform


@click.command(short_help="Print the OpenAPI document.")
@click.option("--yaml", "as_yaml", is_flag=True, help="As YAML.")
@click.option("--server", default="/api/v1", show_default=True, help="Where the API is reached.")
def schema(as_yaml: bool, server: str) -> int:
    """Print the OpenAPI 3.1 document of the REST API, from which clients are generated."""
    return perform("commands.schema:show", prepare=False, as_yaml=as_yaml, server=server)
