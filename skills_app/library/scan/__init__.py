"""Looks through a package, at its import, for what a person should see before it is trusted.

Nothing of it is run, imported or unpacked. A help for the reviewer, no boundary: see
docs/skills-trust.md.

The rules are imported at the first scan: their expressions cost 120 ms to compile, and most
processes scan nothing.
"""

from agents.kernel.lazy_modules import lazy_modules
from skills_app.library.package import Package
from skills_app.library.scan.finding import ScanFinding, findings_json, has_danger

with lazy_modules:
    from skills_app.library.scan import scanning

__all__ = ["ScanFinding", "findings_json", "has_danger", "scan_package"]


def scan_package(package: Package) -> list[ScanFinding]:
    """What a reviewer should look at, the worst first. Never raises, whatever the bytes.

    Every byte of every file is looked at. What is more than the limits is only looked through
    for the plainest signs, and a finding says so.
    """
    return scanning.scan_package(package)
