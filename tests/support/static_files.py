"""Static files are looked up once a process: each test client would look for all of them anew."""

from __future__ import annotations

from typing import Any

from whitenoise.middleware import WhiteNoiseMiddleware

_look_them_up = WhiteNoiseMiddleware.add_files_from_finders
_found: dict[tuple[Any, ...], dict[str, Any]] = {}
"""By what says how they are served."""


def install() -> None:
    """All middleware of this process shares what is found first."""
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
