"""Checks of stored keys for `vel doctor`. They show no part of a key."""

from __future__ import annotations

from collections.abc import Iterator

from agents.features.provider_keys.queries import key_states
from agents.kernel.findings import Finding, Level
from agents.providers.stored_keys import refresh_stored_keys


def check_provider_keys() -> Iterator[Finding]:
    """Report stored keys that cannot be used. Also read the keys, for the check of the model."""
    refresh_stored_keys()
    for state in key_states():
        subject = f"key of {state.provider}"
        if state.problem:
            solution = "Set it again, or remove it: vel providers list."
            yield Finding(subject, Level.BROKEN, state.problem, solution)
        elif state.is_stored and state.in_use == "settings":
            yield Finding(
                subject,
                Level.NOTE,
                f"the stored one is not used, because {state.setting} is set",
                f"Remove one of them: vel providers remove-key {state.provider}",
            )
        elif state.is_stored:
            yield Finding(subject, Level.OK, f"stored for {state.origin}")


DATABASE_CHECKS = [check_provider_keys]
