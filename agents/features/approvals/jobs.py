"""Requests without a decision expire."""

from agents.features.approvals.expiry import expire_approval
from agents.kernel.features import Job

JOBS = [Job("requests that have expired", expire_approval, workers_only=False)]
