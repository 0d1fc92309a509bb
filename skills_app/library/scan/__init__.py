"""Scan a package at its import for parts that a reviewer should check.

Nothing of the package is run, imported or unpacked. The scan helps the reviewer and is not a
security boundary: see docs/guides/skills-trust.md.

The rules are imported at the first scan: their expressions take 120 ms to compile, and most
processes do not scan.
"""

from agents.kernel.lazy_modules import lazy_modules
from skills_app.library.package import Package
from skills_app.library.scan.finding import ScanFinding, findings_json, has_danger

with lazy_modules:
    from skills_app.library.scan import scanning

__all__ = ["ScanFinding", "findings_json", "has_danger", "scan_package"]


def scan_package(package: Package) -> list[ScanFinding]:
    """Return the findings in `package` for a reviewer, worst first.

    The function accepts any bytes and never raises an exception. It examines every byte of every
    file. Bytes beyond the limits are only searched for the plainest signs of an attack, and a
    finding reports this.
    """
    return scanning.scan_package(package)
