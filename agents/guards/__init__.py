"""What an operator may hang into runs: guardrails, which decide, and hooks, which watch.

Both are classes of the operator's own, named by dotted path in `settings.VEL["GUARDRAILS"]` and
`settings.VEL["HOOKS"]`. docs/guards.md has a whole example.
"""

from agents.guards.guardrail import Decision, GuardContext, Guardrail, allow, block, replace
from agents.guards.lifecycle_hooks import HookContext, Hooks

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
