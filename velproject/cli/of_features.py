"""The commands of the installed features, which their `cli.py` have."""

from __future__ import annotations

from django.apps import AppConfig

from agents.features.installed import installed_features
from agents.kernel.features import FeatureConfig
from velproject.cli.lazy_group import Table


def tables_of_features() -> list[Table]:
    """Return a table for each feature that has commands. Needs no set-up of Django."""
    configs = [AppConfig.create(path) for path in installed_features()]
    return [
        {f"{config.name}.cli": config.commands}
        for config in configs
        if isinstance(config, FeatureConfig) and config.commands
    ]
