"""Search static files once for each process instead of once for each test client."""

from __future__ import annotations

from typing import Any

from whitenoise.middleware import WhiteNoiseMiddleware

_look_them_up = WhiteNoiseMiddleware.add_files_from_finders
_found: dict[tuple[Any, ...], dict[str, Any]] = {}
"""The found files by the settings that determine how they are served."""


def install() -> None:
    """Let all middleware of this process share the first result."""
    WhiteNoiseMiddleware.add_files_from_finders = _add_files


def _add_files(middleware: WhiteNoiseMiddleware) -> None:
    how = (
        middleware.static_prefix,
        middleware.max_age,
        middleware.charset,
        middleware.allow_all_origins,
    )
    if how not in _found:
        _look_them_up(middleware)
        _found[how] = dict(middleware.files)
    middleware.files.update(_found[how])
