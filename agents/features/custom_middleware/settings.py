"""The setting of custom middleware."""

from agents.kernel.settings import FeatureSettings


class MiddlewareSettings(FeatureSettings):
    """Middleware of your own

    See [middleware](../guides/middleware.md). `PYTHONPATH` says where the modules are.
    """

    IN_PROGRAMS = True

    MIDDLEWARE: tuple[str, ...] = ()
    """Dotted paths of middleware. Each run calls their hooks."""


SETTINGS = (MiddlewareSettings,)
