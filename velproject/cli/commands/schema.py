"""`vel schema`: the OpenAPI document of the REST API."""

from __future__ import annotations

import json

import click

from agents.doors.cli.boot import with_settings
from agents.doors.cli.late_imports import late_imports

with late_imports:
    from yaml import safe_dump

    from agents.api.schema_document import document_at


@click.command(short_help="Print the OpenAPI document.")
@click.option("--yaml", "as_yaml", is_flag=True, help="Print YAML instead of JSON.")
@click.option("--server", default="/api/v1", show_default=True, help="Base URL of the API.")
@with_settings
def schema(as_yaml: bool, server: str) -> None:
    """Print the OpenAPI 3.1 document of the REST API, for example to generate clients."""
    document = document_at(server)
    if as_yaml:
        print(safe_dump(document, sort_keys=False, allow_unicode=True), end="")
    else:
        print(json.dumps(document, indent=2, ensure_ascii=False))


COMMANDS = (schema,)
