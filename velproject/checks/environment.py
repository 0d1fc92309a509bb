"""Django system checks of environment variables that have no effect, or will have none."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from django.conf import settings as django_settings
from django.core.checks import CheckMessage, Warning, register

from agents.kernel.settings import FeatureSettings, installed, nearest, settings_of
from velproject.server_settings import ServerSettings

UNKNOWN_VARIABLE = "vel.W006"
DEPRECATED_SETTING = "vel.W007"
_NOT_SETTINGS = re.compile(
    # Vel sets these for sandboxes, MCP servers and tests.
    r"VEL_(SANDBOX|STATE_DIR|TEST_.*)"
    # A command reads it. It is not a setting, so that no server keeps it.
    r"|VEL_BACKUP_PASSPHRASE"
    # Docker and Kubernetes set these for a service with a name like vel-db.
    r"|.*_SERVICE_HOST|.*_SERVICE_PORT(_.*)?|.*_PORT|.*_PORT_[0-9]+_(TCP|UDP)(_(PROTO|PORT|ADDR))?"
)


@register()
def check_environment(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Warn of variables that start with VEL_ but belong to no setting.

    This is a warning, not an error, because another program or another version of Vel may read
    them.
    """
    known = {
        variable
        for declared_in in (*installed(), ServerSettings)
        for setting in settings_of(declared_in)
        for variable in setting.variables
    }
    return [
        Warning(
            f"The environment variable {name} has no effect. {nearest(name, known)}".rstrip(),
            hint="docs/reference/settings.md lists the variables.",
            id=UNKNOWN_VARIABLE,
        )
        for name in sorted(os.environ)
        if name.startswith("VEL_") and name not in known and not _NOT_SETTINGS.fullmatch(name)
    ]


@register()
def check_deprecated(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Warn of settings that a later version removes."""
    return [
        Warning(f"{place} is deprecated. {advice}", id=DEPRECATED_SETTING)
        for place, advice in deprecated_settings((*installed(), ServerSettings), os.environ)
    ]


def deprecated_settings(
    classes: Iterable[type[FeatureSettings]], environ: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Return (variable or key, advice) for each deprecated setting that has a value."""
    found = []
    for declared_in in classes:
        given = getattr(django_settings, declared_in.DICTIONARY, {}) or {}
        for setting in settings_of(declared_in):
            if not setting.about.deprecated:
                continue
            variable = next((name for name in setting.variables if environ.get(name)), "")
            # Vel's own project copies the variables into the dictionary.
            place = variable or (setting.place if setting.name in given else "")
            if place:
                found.append((place, setting.about.deprecated))
    return found
