"""A Django system check of the installed features."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.apps import apps
from django.core.checks import CheckMessage, Error, register
from django.core.exceptions import ImproperlyConfigured

from agents.kernel.features import feature_modules, features
from agents.kernel.lazy_modules import lazy_modules
from agents.models import Agent

with lazy_modules:
    # pydantic takes 0.2 s, and the supervisor and most commands run no checks.
    from agents.agent_files import shape


MODULES = (
    "options",
    "middleware",
    "connections",
    "api",
    "doctor",
    "frames",
    "jobs",
    "metrics",
    "notices",
    "pages",
    "retention",
    "row_hooks",
    "status",
    "urls",
)
"""The modules of features with their extensions."""


@register()
def check_features(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Check each feature: required apps, modules that can be imported, and the order of hooks."""
    found: list[CheckMessage] = []
    for feature in features():
        found += [
            Error(
                f"The feature {feature.label} needs the app {label}, which is not installed.",
                hint=f"Add it to INSTALLED_APPS, or remove {feature.name} from there.",
                id="vel.E029",
            )
            for label in feature.requires
            if label not in apps.app_configs
        ]
    if found:
        return found  # its modules cannot be imported without the app
    try:
        taken = shape.ambiguous_options(dir(Agent))
    except ImproperlyConfigured as error:
        return [Error(str(error), id="vel.E029")]
    found += [
        Error(
            f"The option {name!r} of a feature has the name of a field that every agent has.",
            hint="Rename the option.",
            id="vel.E029",
        )
        for name in taken
    ]
    for name in MODULES:
        try:
            list(feature_modules(name))
        except ImproperlyConfigured as error:
            found.append(Error(str(error), id="vel.E029"))
    if found:
        return found
    # Imported here, for the same reason.
    chain = import_module("agents.kernel.chain")
    return [Error(problem, id="vel.E029") for problem in chain.order_problems()]
