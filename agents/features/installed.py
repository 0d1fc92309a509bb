"""The features of an installation. Settings can import it: it needs no app."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured

from agents.features import FEATURES
from agents.settings import AppSettings


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
