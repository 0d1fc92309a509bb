"""The middleware that the operator has registered, and that of a program."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from functools import lru_cache

from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from agents.custom.base_middleware import BaseMiddleware
from agents.custom.hooks import HOOKS, Hooks, overrides
from agents.features.custom_middleware.settings import MiddlewareSettings


@lru_cache(maxsize=1)
def registered() -> tuple[Hooks, ...]:
    """Return the middleware of `VEL["MIDDLEWARE"]`. Raises `ImproperlyConfigured`."""
    found: list[Hooks] = []
    for path in MiddlewareSettings.now().MIDDLEWARE:
        where = f'settings.VEL["MIDDLEWARE"]: {path}'
        try:
            given = import_string(path)
            made = given if isinstance(given, BaseMiddleware) else given()
        except (Exception, SystemExit) as error:
            raise ImproperlyConfigured(
                f"{where} cannot be used ({type(error).__name__}: {error})."
            ) from error
        if not isinstance(made, BaseMiddleware):
            raise ImproperlyConfigured(f"{where} is not a subclass of vel.BaseMiddleware.")
        if made.get_tools() or made.get_system_prompt_segment():
            raise ImproperlyConfigured(
                f"{where} has tools or a segment of the prompt, which only agents of Python "
                'programs can have. List tools in settings.VEL["TOOLS"].'
            )
        try:
            hooked = hooks_of([made])
        except ValueError as error:
            raise ImproperlyConfigured(f"{where} {error}") from None
        if not hooked:
            raise ImproperlyConfigured(f"{where} has no hook: override one of {', '.join(HOOKS)}.")
        found += hooked
    return tuple(found)


def hooks_of(middleware: Iterable[object]) -> tuple[Hooks, ...]:
    """Return the middleware that override a hook. Raises `ValueError` for one that cannot work."""
    found = []
    for item in middleware:
        own = [hook for hook in HOOKS if overrides(item, hook)]
        for hook in own:
            if not inspect.iscoroutinefunction(getattr(item, hook)):
                raise ValueError(f"{type(item).__name__}.{hook} is not an async def.")
        if own and not isinstance(item, Hooks):
            raise ValueError(
                f"{type(item).__name__} has hooks, but is not a subclass of BaseMiddleware. Derive "
                "it from BaseMiddleware."
            )
        if isinstance(item, Hooks) and own:
            found.append(item)
    return tuple(found)


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "VEL":
        registered.cache_clear()


setting_changed.connect(_forget, dispatch_uid="agents.features.custom_middleware.registry")
