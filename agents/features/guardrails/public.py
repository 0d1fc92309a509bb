"""The classes to subclass: guardrails, which decide, and lifecycle hooks, which watch.

`settings.VEL["GUARDRAILS"]` and `settings.VEL["HOOKS"]` name subclasses by their dotted paths.
docs/guides/guardrails.md has a complete example.
"""

from agents.features.guardrails.guardrail import (
    Decision,
    GuardContext,
    Guardrail,
    allow,
    block,
    replace,
)
from agents.features.guardrails.lifecycle_hooks import HookContext, Hooks

__all__ = [
    "Decision",
    "GuardContext",
    "Guardrail",
    "HookContext",
    "Hooks",
    "allow",
    "block",
    "replace",
]
