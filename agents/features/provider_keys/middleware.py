"""Read the stored keys before a run starts or continues."""

from __future__ import annotations

from agents.kernel.middleware import LoadContext
from agents.middleware.base import Middleware
from agents.providers.stored_keys import refresh_stored_keys


class ProviderKeysMiddleware(Middleware):
    name = "provider_keys"

    def load(self, context: LoadContext) -> None:
        """Read the keys in the transaction of the claim, and add no state."""
        refresh_stored_keys()


MIDDLEWARE = [ProviderKeysMiddleware()]
