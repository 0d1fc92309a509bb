"""The actions of `vel features`."""

from __future__ import annotations

import json

import click

from agents.features import FEATURES
from agents.kernel.features import features
from agents.services.errors import ServiceError
from agents.services.feature_removal import feature_named, remove_feature, rows_of
from velproject.cli.errors import FAILED, CliError
from velproject.cli.terminal import one_line


def list_features(*, as_json: bool) -> int:
    """Print each feature with its label, its package and the number of its rows."""
    for feature in features():
        found = {"label": feature.label, "package": feature.name, "rows": rows_of(feature)}
        if as_json:
            print(json.dumps(found))
        else:
            print(one_line(f"{feature.label:<24} {found['rows']:>8} rows  {feature.name}"))
    return 0


def remove(*, label: str, yes: bool) -> int:
    """Remove a feature, after the person has said so."""
    try:
        feature = feature_named(label)
        count = rows_of(feature)
        if not yes and not click.confirm(
            f"Remove the tables of {feature.label}, with {count} rows?", err=True
        ):
            raise CliError("nothing was removed.", exit_code=FAILED)
        remove_feature(feature)
    except ServiceError as error:
        raise CliError(error.message, exit_code=FAILED) from None
    name = feature.name.rpartition(".")[2]
    setting = (
        f"add {name} to VEL_DISABLED_FEATURES"
        if feature.name in FEATURES
        else f"remove {feature.name} from VEL_APPS"
    )
    print(f"The tables of {feature.label} are removed. Now {setting}, before you start Vel again.")
    return 0
