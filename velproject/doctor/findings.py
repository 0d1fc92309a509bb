"""What `vel doctor` finds."""

from agents.kernel.findings import Finding, Level

__all__ = ["Finding", "Level"]
