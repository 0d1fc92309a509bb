"""Read the stored keys each second, so that runs in progress use a new one."""

from __future__ import annotations

from agents.kernel.features import Job
from agents.providers.stored_keys import refresh_stored_keys

JOBS = [Job("provider keys", refresh_stored_keys, workers_only=False)]
