"""The commands of the installed features, from their `apps.py`.

Imported when they are needed: Django takes most of the time of `vel --help`.
"""

from __future__ import annotations

import sys

from django.apps import AppConfig

from agents.features import installed_features
from agents.kernel.features import FeatureConfig
from velproject.cli.lazy_group import Table


def table() -> Table:
    """Return the commands. A feature that cannot be imported is named on standard error."""
    found: dict[str, dict[str, str]] = {}
    for path in installed_features():
        try:
            config = AppConfig.create(path)
        except ImportError as error:
            print(f"vel: the commands of {path} are left out: {error}.", file=sys.stderr)
            continue
        if isinstance(config, FeatureConfig) and config.commands:
            found[f"{config.name}.cli"] = dict(config.commands)
    return found
