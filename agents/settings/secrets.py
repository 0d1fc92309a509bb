"""Keys that encrypt stored data."""

from typing import Annotated

from agents.kernel.settings import About, FeatureSettings


class SecretSettings(FeatureSettings):
    """Stored secrets"""

    IN_PROGRAMS = True

    SECRET_KEYS: Annotated[
        tuple[str, ...], About(is_secret=True, default="Django's `SECRET_KEY` and its fallbacks")
    ] = ()
    """Keys that encrypt stored secrets, such as the URLs of [databases](../guides/databases.md).
    The first encrypts, all decrypt ([rotation](../guides/databases.md#encryption-keys))."""
