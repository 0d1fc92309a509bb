"""The text scanner under its public name. Neither the scanner nor this module needs Django.

The code is in the package `text_scanner`, because skills and MCP servers use it without the memory.
"""

from text_scanner import MAX_FINDINGS, Finding, Severity, detect_suspicious_patterns, scan

__all__ = ["MAX_FINDINGS", "Finding", "Severity", "detect_suspicious_patterns", "scan"]
