"""Findings of `vel doctor`."""

from agents.kernel.findings import Finding, Level

__all__ = ["Finding", "Level"]
