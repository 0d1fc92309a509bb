"""Looks through a package, at its import, for what a person should see before it is trusted.

Nothing of it is run, imported or unpacked. A help for the reviewer, no boundary: see
docs/skills-trust.md.
"""

from skills_app.scan.finding import ScanFinding, findings_json, has_danger
from skills_app.scan.scanning import scan_package

__all__ = ["ScanFinding", "findings_json", "has_danger", "scan_package"]
