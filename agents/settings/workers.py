"""How many runs a worker drives, and how fast another one takes them over."""

from agents.kernel.settings import FeatureSettings, Positive, Seconds


class WorkerSettings(FeatureSettings):
    """Workers"""

    RUNS_PER_WORKER: Positive = 32
    """Runs that one worker process drives at the same time."""
    LEASE_SECONDS: Seconds = 30.0
    """How long a run stays with a worker that does not renew its lease."""
    HEARTBEAT_SECONDS: Seconds = 5.0
    """How often a worker renews its leases."""
    SWEEP_SECONDS: Seconds = 5.0
    """How often each process looks for runs without a worker."""
