"""The features that come with Vel. Each is one Django app, which can be removed.

Needs no Django, so that settings can import it.
"""

from __future__ import annotations

from collections.abc import Collection

FEATURES = (
    "agents.features.credentials",
    "agents.features.slack",
    "agents.features.google_workspace",
)
"""For INSTALLED_APPS, after `agents`."""


def enabled_features(disabled: Collection[str]) -> list[str]:
    """Return `FEATURES` without those in `disabled`, for example `slack`.

    Raises `ValueError` for a name that is not the name of a feature.
    """
    names = {path.rpartition(".")[2]: path for path in FEATURES}
    for name in disabled:
        if name not in names:
            raise ValueError(f"there is no feature {name!r}; there are: {', '.join(names)}.")
    return [path for name, path in names.items() if name not in disabled]
