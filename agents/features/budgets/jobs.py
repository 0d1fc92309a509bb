"""Periodic work of budgets."""

from agents.kernel.features import Job
from agents.kernel.lazy_modules import lazy_modules

with lazy_modules:
    # Commands do no such jobs.
    from agents.features.budgets import outside_calls


def release_expired() -> bool:
    """Release one reservation of a model call whose process has died."""
    return outside_calls.release_expired()


JOBS = [Job("expired reservations", release_expired, every=60)]
