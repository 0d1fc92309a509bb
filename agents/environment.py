"""Environment variables that the runs of this process obey, in a server and in a program alike.

A value that does not fit is an `ImproperlyConfigured` with the name of the variable.
"""

from __future__ import annotations

import os
from typing import Any

from django.core.exceptions import ImproperlyConfigured

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}


def text(name: str, default: str = "") -> str:
    return os.environ.get(name, default).strip()


def boolean(name: str, default: bool = False) -> bool:
    raw = os.environ.get(name)
    if raw is None:
        return default
    if raw.strip().lower() in _TRUE:
        return True
    if raw.strip().lower() in _FALSE:
        return False
    raise ImproperlyConfigured(f"{name}={raw!r}: write 1 or 0.")


def integer(name: str, default: int, *, at_least: int = 0) -> int:
    raw = os.environ.get(name)
    if raw is None or not raw.strip():
        return default
    try:
        value = int(raw)
    except ValueError:
        raise ImproperlyConfigured(f"{name}={raw!r}: write a whole number.") from None
    if value < at_least:
        raise ImproperlyConfigured(f"{name}={raw!r}: write a number of at least {at_least}.")
    return value


def items(name: str, default: list[str]) -> list[str]:
    """A comma-separated list; blanks around the items are dropped."""
    raw = os.environ.get(name)
    if raw is None:
        return default
    return [item.strip() for item in raw.split(",") if item.strip()]


def directories(name: str) -> tuple[str, ...]:
    """A comma-separated list of absolute paths; `~` is the home of this account."""
    paths = [os.path.expanduser(item) for item in items(name, [])]
    for path in paths:
        if not os.path.isabs(path):
            raise ImproperlyConfigured(f"{name}: {path!r} is relative: write the absolute path.")
    return tuple(dict.fromkeys(os.path.normpath(path) for path in paths))


def run_settings() -> dict[str, Any]:
    """Return the part of `settings.VEL` that runs obey wherever they are driven."""
    return {
        "PROVIDER": text("VEL_PROVIDER"),
        "MODEL": text("VEL_MODEL"),
        "ANTHROPIC_API_KEY": text("ANTHROPIC_API_KEY"),
        "ANTHROPIC_BASE_URL": text("ANTHROPIC_BASE_URL"),
        "OPENAI_API_KEY": text("OPENAI_API_KEY"),
        "OPENAI_BASE_URL": text("OPENAI_BASE_URL"),
        "GOOGLE_API_KEY": text("GOOGLE_API_KEY") or text("GEMINI_API_KEY"),
        "GOOGLE_BASE_URL": text("GOOGLE_GEMINI_BASE_URL"),
        "FALLBACK_WITHOUT_KEY": boolean("VEL_FALLBACK_WITHOUT_KEY"),
        "IMAGE_MODELS": tuple(items("VEL_IMAGE_MODELS", [])),
        "RESERVE_BYTES": integer("VEL_RESERVE_BYTES", 100_000_000),
        "SECRET_KEYS": tuple(items("VEL_SECRET_KEYS", [])),
        "GUARDRAILS": tuple(items("VEL_GUARDRAILS", [])),
        "HOOKS": tuple(items("VEL_HOOKS", [])),
        "TOOLS": tuple(items("VEL_TOOLS", [])),
    }


def skill_settings() -> dict[str, Any]:
    """Return `settings.VEL_SKILLS`."""
    return {"DIRECTORIES": directories("VEL_SKILLS_DIRS")}
