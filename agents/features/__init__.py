"""The features that come with Vel. Each is one Django app, which can be removed.

Settings can import it: it needs no app.
"""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured

from agents.settings import AppSettings

FEATURES = (
    "agents.features.credentials",
    "agents.features.slack",
    "agents.features.google_workspace",
    "agents.features.schedules",
    "agents.features.inbound_webhooks",
    "agents.features.forks",
    "agents.features.notifications",
)
"""For INSTALLED_APPS, after `agents`."""


def installed_features() -> list[str]:
    """Return `FEATURES` without those of `VEL_DISABLED_FEATURES`, and the apps of `VEL_APPS`.

    Raises `ImproperlyConfigured` for a disabled feature that does not exist.
    """
    settings = AppSettings.now()
    disabled = settings.DISABLED_FEATURES
    names = {path.rpartition(".")[2]: path for path in FEATURES}
    for name in disabled:
        if name not in names:
            raise ImproperlyConfigured(
                f"VEL_DISABLED_FEATURES: there is no feature {name!r}; there are: "
                f"{', '.join(names)}."
            )
    own = [path for name, path in names.items() if name not in disabled]
    return [*own, *settings.APPS]
