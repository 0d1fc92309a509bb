"""`vel features`: list the installed features, or remove the tables of one."""

from __future__ import annotations

import json

import click

from agents.doors.cli.boot import with_database
from agents.doors.cli.errors import FAILED, CliError
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import json_option
from agents.doors.cli.terminal import one_line

with late_imports:
    from agents.features import FEATURES
    from agents.features.removal import feature_named, remove_feature, rows_of
    from agents.kernel.features import features as installed
    from agents.services.errors import ServiceError


@click.group(short_help="List features, or remove the tables of one.")
def features() -> None:
    """Manage installed features: Vel's own, and those of VEL_APPS."""


@features.command("list", short_help="List the installed features.")
@json_option
@with_database
def list_features(as_json: bool) -> None:
    """List the installed features with the number of their rows."""
    for feature in installed():
        found = {"label": feature.label, "package": feature.name, "rows": rows_of(feature)}
        if as_json:
            print(json.dumps(found))
        else:
            print(one_line(f"{feature.label:<24} {found['rows']:>8} rows  {feature.name}"))


@features.command(short_help="Remove the tables of a feature.")
@click.argument("label")
@click.option("--yes", is_flag=True, help="Remove without asking.")
@with_database
def remove(label: str, yes: bool) -> None:
    """Remove the tables of a feature, with all rows, and its permissions.

    Stop Vel first. Afterwards disable the feature: set VEL_DISABLED_FEATURES, or remove it from
    VEL_APPS. Otherwise the next start creates its tables again.
    """
    try:
        feature = feature_named(label)
        count = rows_of(feature)
        if not yes and not click.confirm(
            f"Remove the tables of {feature.label}, with {count} rows?", err=True
        ):
            raise CliError("Nothing was removed.", exit_code=FAILED)
        remove_feature(feature)
    except ServiceError as error:
        raise CliError(error.message, exit_code=FAILED) from None
    name = feature.name.rpartition(".")[2]
    setting = (
        f"add {name} to VEL_DISABLED_FEATURES"
        if feature.name in FEATURES
        else f"remove {feature.name} from VEL_APPS"
    )
    print(f"Removed the tables of {feature.label}. Before you start Vel again, {setting}.")


COMMANDS = [features]
