"""`vel features`: what is installed, and removing one with its tables."""

from __future__ import annotations

import click

from velproject.cli.boot import perform
from velproject.cli.options import json_option


@click.group(short_help="Features: which are installed; remove one.")
def features() -> None:
    """Features that are installed: Vel's own, and those of VEL_APPS."""


@features.command("list", short_help="The installed features.")
@json_option
def list_features(as_json: bool) -> int:
    """List the installed features with the number of their rows."""
    return perform("features:list_features", as_json=as_json)


@features.command(short_help="Remove the tables of a feature.")
@click.argument("label")
@click.option("--yes", is_flag=True, help="Do not ask.")
def remove(label: str, yes: bool) -> int:
    """Remove the tables of a feature, with all rows, and its permissions.

    Stop Vel first. Afterwards disable the feature: set VEL_DISABLED_FEATURES, or remove it from
    VEL_APPS. Otherwise the next start makes its tables again.
    """
    return perform("features:remove", label=label, yes=yes)
